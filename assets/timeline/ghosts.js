// Timelines that are not: what would be after a move, drawn over the bars of what is, and what was
// before the last edit, a slim strip along the upper edge of each lane.
//
// Bars are strokes of one path, for a thousand of them as elements would take too long to draw.

class Ghost {
  constructor(gantt, kind, slim = false) {
    this.gantt = gantt;
    this.kind = kind;
    this.slim = slim;
    this.bars = null;
    this.text = "";
    // Where its words begin.
    this.from = Infinity;
  }

  // Rows by their names, as Python says them; null for none.
  show(bars, text = "") {
    this.bars = bars;
    this.text = text;
    this.draw();
  }

  draw() {
    this.drawn?.remove();
    this.drawn = null;
    this.from = Infinity;
    const { gantt } = this;
    gantt.showTargets(true);
    gantt.fitNotes();
    if (!this.slim) gantt.past.say(!this.bars);
    // What is asked about is the first panel's placement; timelines elsewhere ask nothing.
    if (!this.bars || !gantt.svg || !gantt.data.asks || gantt.frame.clientWidth < LEAST_WIDTH) return;
    const number = 0;
    this.drawn = node("g", { class: this.kind });
    const top = gantt.tops[number], { tall } = gantt.spreads[number];
    const plot = node("g", { "clip-path": "url(#plot)" });
    plot.append(node("path", { d: this.path(number, top) }));
    const end = gantt.x(this.bars.end_s), height = tall - gantt.sizes.gap;
    plot.append(node("line", { x1: end, x2: end, y1: top + gantt.sizes.title - 4, y2: top + height }));
    this.drawn.append(plot, this.label(top, end));
    // Below what is being dragged, whose words must stay readable.
    gantt.svg.insertBefore(this.drawn, gantt.svg.querySelector(".lane"));
    this.clear(number);
    gantt.fitNotes();
  }

  // What was needs no word while it is told what would be.
  say(aloud) {
    this.drawn?.querySelector("text")?.setAttribute("visibility", aloud ? "visible" : "hidden");
  }

  // Beside the panel's title where it would stand on it, and before the words about targets; where
  // there is no room between the two, the title's note is shortened, and what is foretold comes first,
  // for it is gone soon.
  clear(number) {
    const { gantt } = this, text = this.drawn.querySelector("text"), width = text.getBBox().width;
    const title = gantt.svg.querySelectorAll(".panel > .title")[number], box = title.getBBox();
    const note = title.querySelector(".note"), edge = gantt.left + gantt.plot;
    const targets = gantt.svg.querySelector(".targets > text")?.getBBox();
    const end = targets ? targets.x - 12 : edge;
    let free = box.x + box.width + 12;
    if (note && free + width > end) free = endOf(title) + NOTE_GAP;
    const isTight = free + width > end;
    if (isTight && targets && this.slim) text.remove();
    if (isTight && targets && !this.slim) gantt.showTargets(false);
    const right = isTight ? edge : end, x = Math.min(Number(text.getAttribute("x")), right);
    text.setAttribute("x", x - width >= free ? x : Math.min(free + width, Math.max(right, width)));
    if (text.isConnected) this.from = Number(text.getAttribute("x")) - width;
  }

  path(number, top) {
    const { gantt } = this, { spots } = gantt.spreads[number], strokes = [];
    const index = new Map(gantt.data.panels[number].rows.map((row, i) => [row.name, i]));
    for (const [name, stretches] of this.bars.rows) {
      const spot = spots[index.get(name)];
      if (!spot) continue;
      const { pad, slim, bar } = gantt.sizes;
      const y = top + spot.top + (this.slim ? -1 : spot.folded ? 1 : pad);
      const tall = this.slim ? Math.min(3, pad) : spot.folded ? slim : bar;
      for (const [start, end] of stretches) {
        if (end < gantt.from || start > gantt.to) continue;
        const left = Math.max(gantt.x(start), gantt.left - 20);
        const width = Math.max(LEAST_PX, Math.min(gantt.x(end), gantt.width + 20) - left);
        strokes.push(`M${left.toFixed(1)} ${y}h${width.toFixed(1)}v${tall}h${(-width).toFixed(1)}z`);
      }
    }
    return strokes.join("");
  }

  // At its end, or where that is out of sight at the edge that it lies behind.
  label(top, end) {
    const { gantt } = this, right = gantt.left + gantt.plot;
    const beyond = end > right + 1, x = Math.min(Math.max(end, gantt.left), right);
    const text = node("text", { class: "told", y: top + gantt.sizes.title / 2 + 4, x, "text-anchor": "end" });
    text.textContent = beyond ? `${this.text} →` : this.text;
    return text;
  }
}
