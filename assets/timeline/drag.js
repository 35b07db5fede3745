// A bar under way: over another device its ops would move there, along its own lane they would run
// earlier or later. With a bar that is selected go all that are.

const FAR_PX = 5;

class BarDrag {
  constructor(gantt, panel, bar, event) {
    this.gantt = gantt;
    this.panel = panel;
    this.bar = bar;
    this.start = { x: event.clientX, y: event.clientY };
    const { bars, selected } = gantt.data.panels[panel];
    this.row = bars[bar].row;
    this.bars = selected.includes(bar) ? selected.filter((i) => gantt.canMove(panel, i)) : [bar];
    this.ghost = null;
  }

  get isUnderWay() {
    return this.ghost !== null;
  }

  isFar(event) {
    return Math.hypot(event.clientX - this.start.x, event.clientY - this.start.y) >= FAR_PX;
  }

  to(event) {
    const { gantt } = this;
    if (!this.ghost) this.begin();
    const zoom = zoomOf(gantt.frame);
    const dx = (event.clientX - this.start.x) / zoom, dy = (event.clientY - this.start.y) / zoom;
    this.ghost.setAttribute("transform", `translate(${dx} ${dy})`);
    const box = gantt.frame.getBoundingClientRect();
    const x = (event.clientX - box.left) / zoom;
    this.target = this.laneAt((event.clientY - box.top) / zoom + gantt.frame.scrollTop);
    this.before = this.slotAt(gantt.seconds(x));
    this.show(x);
    this.ask();
  }

  // What a drop here would do.
  ask() {
    const told = this.told();
    if (!told || !this.gantt.data.asks) {
      consequences.end();
      return;
    }
    const { device = this.target, ...bar } = told;
    consequences.ask({ device, bar });
  }

  begin() {
    const { gantt } = this;
    gantt.root.classList.add("dragging");
    this.ghost = node("g", { class: "ghost" });
    for (const i of this.bars) {
      const drawn = gantt.svg.querySelector(`.bar[data-panel="${this.panel}"][data-bar="${i}"]`);
      if (!drawn) continue;
      const copy = drawn.cloneNode();
      copy.removeAttribute("data-bar");
      this.ghost.append(copy);
    }
    this.lane = node("rect", { class: "lane", x: 0, width: gantt.width });
    this.slot = node("line", { class: "slot" });
    this.said = node("text", { class: "said" });
    this.plate = node("rect", { class: "plate", rx: 4, height: 18 });
    gantt.svg.append(this.lane, this.ghost, this.slot, this.plate, this.said);
  }

  // The row of the device that is nearest to a height; the links below a device are its own.
  laneAt(y) {
    const { gantt, panel } = this, { spots } = gantt.spreads[panel];
    const lanes = gantt.rows[panel].filter((row) => row.device);
    const from = (row) => gantt.tops[panel] + spots[row.index].top;
    const above = lanes.filter((row) => from(row) <= y);
    return (above[above.length - 1] ?? lanes[0]).index;
  }

  // The bar of the lane that what is dragged would run right before; null for the end.
  slotAt(seconds) {
    const next = this.others().find((i) => (this.all[i].start_s + this.all[i].end_s) / 2 > seconds);
    return next ?? null;
  }

  get all() {
    return this.gantt.data.panels[this.panel].bars;
  }

  // Bars that stay on the lane where they are held, from left to right.
  others() {
    return [...this.all.keys()]
      .filter((i) => this.all[i].row === this.target && !this.bars.includes(i))
      .sort((a, b) => this.all[a].start_s - this.all[b].start_s || a - b);
  }

  // Whether the bars would run where they run already.
  isIdle() {
    const others = this.others(), own = this.bars.filter((i) => this.all[i].row === this.row);
    const next = (i) => others.find((o) => this.all[o].start_s >= this.all[i].start_s) ?? null;
    return own.every((i) => next(i) === this.before);
  }

  show(x) {
    const { gantt, panel, target } = this;
    const spot = gantt.spreads[panel].spots[target], y = gantt.tops[panel] + spot.top;
    this.lane.setAttribute("y", y);
    this.lane.setAttribute("height", spot.tall);
    const along = target === this.row, idle = along && this.isIdle();
    const name = gantt.data.panels[panel].rows[target].name;
    const others = this.others(), last = others[others.length - 1];
    const at = this.before === null ? this.all[last]?.end_s : this.all[this.before].start_s;
    let text = `to ${name}`;
    if (along) {
      text = idle ? "" : this.before === null ? `last on ${name}` : `before ${this.all[this.before].text}`;
    }
    const mark = at === undefined || idle ? null : Math.min(Math.max(gantt.x(at), gantt.left), gantt.width);
    this.slot.style.display = mark === null ? "none" : "";
    if (mark !== null) for (const [k, v] of Object.entries({ x1: mark, x2: mark, y1: y + 1, y2: y + spot.tall - 2 })) this.slot.setAttribute(k, v);
    this.said.textContent = text;
    const right = x > gantt.width * 0.7;
    this.said.setAttribute("text-anchor", right ? "end" : "start");
    this.said.setAttribute("x", right ? x - 12 : x + 12);
    // In its lane: above it there may be the words about the step.
    this.said.setAttribute("y", y + gantt.sizes.row / 2 + 4);
    // It lies over titles and bars, so it has a ground of its own.
    this.plate.style.display = text ? "" : "none";
    const { x: left, y: top, width } = this.said.getBBox();
    for (const [k, v] of Object.entries({ x: left - 6, y: top - 2, width: width + 12 })) this.plate.setAttribute(k, v);
  }

  // What Python is told of the drop; null where nothing would change.
  told() {
    const { panel, bar, target } = this, { key, version, selected } = this.gantt.data.panels[panel];
    const about = { panel: key, version, bar, all: selected.includes(bar) };
    if (target !== this.row) return { kind: "drop", ...about, device: target, before: this.before };
    return this.isIdle() ? null : { kind: "order", ...about, before: this.before };
  }

  end() {
    this.gantt.root.classList.remove("dragging");
    if (this.ghost) consequences.end();
    for (const drawn of [this.ghost, this.lane, this.slot, this.plate, this.said]) drawn?.remove();
  }
}
