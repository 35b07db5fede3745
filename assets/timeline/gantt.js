// Timelines one above the other on one time axis.
//
// Drawn as SVG from bars that Python has made. What is zoomed into stays while Python sends other
// bars or another selection. Below each device are the links that it sends over; folded, they are
// one thin strip.

const RIGHT = 14;
// A frame that is narrower shows nothing.
const LEAST_WIDTH = 80;
// Between a title and the note behind it.
const NOTE_GAP = 10;
// Lanes are this tall where there is room, and shrink to this share of it where all of them are in sight
// then, whose bars have names of 9 px; of more, to the second one, at which names have their full size.
// Rather than below the third one, links are folded.
const LEAST_LANES = 14 / 24, CLEAR_LANES = 0.68, EASY_LANES = 0.75;
// More rows of links than these are folded at first.
const MOST_LINKS = 3;
const LEAST_PX = 2, MOST_ZOOM = 1e5;
// Before an audience letters shrink to this share of their size at a desk where all lanes have room
// then, and else not at all.
const LEAST_TEXT = 1.125;
const alive = (globalThis.__placementGantt ??= new WeakMap());
// By the name of a device, whether somebody folded its links; it outlives a change of page.
const folds = (globalThis.__placementGanttFolds ??= new Map());

class Gantt {
  constructor(parent) {
    this.root = parent.querySelector(".gantt");
    this.frame = this.root.querySelector(".frame");
    this.from = 0;
    this.to = 1;
    this.width = 0;
    this.outbox = new Outbox();
    this.past = new Ghost(this, "past", true);
    this.future = new Ghost(this, "foretold");
    this.pointer = new Pointer(this);
    this.heard = ({ detail }) => this.foretell(detail);
    window.addEventListener("placement-consequence", this.heard);
    this.watcher = new ResizeObserver(() => {
      if (this.frame.clientWidth !== this.width || this.room() !== this.fitted) this.draw();
    });
    this.watcher.observe(this.frame);
    this.frame.addEventListener("scroll", () => this.tellMore());
    this.scroller = null;
  }

  close() {
    this.pointer.drop();
    this.pointer.heldKey.drop();
    window.removeEventListener("placement-consequence", this.heard);
    this.watcher.disconnect();
    this.outbox.close();
  }

  show(data, send) {
    this.outbox.send = send;
    this.outbox.acknowledge(data.session, data.ack);
    if (data.asks) consequences.about(data.asks, data.session);
    const { before } = data, ends = data.panels.map((panel) => panel.end_s);
    const longest = Math.max(1e-12, ...ends, ...(data.targets ?? []).map((target) => target.at_s));
    // An edit of what is drawn: all of it stays where it is, so that before and after compare.
    const edited = Boolean(this.data) && [data.of, before?.of].includes(this.of) && Boolean(before);
    const whole = !this.data || (this.from === 0 && this.to === this.end);
    this.data = data;
    this.end = Math.max(longest, before?.bars?.end_s ?? 0, edited ? this.end : 0);
    if (whole || !(edited || data.of === this.of)) [this.from, this.to] = [0, this.end];
    this.of = data.of;
    this.longest = Math.max(longest, before?.bars?.end_s ?? 0);
    [this.past.bars, this.past.text] = [before?.bars ?? null, before?.bars ? "before" : ""];
    [this.from, this.to] = this.within(this.from, this.to);
    this.root.querySelector(".help").textContent = data.help;
    this.root.classList.toggle("hatched", Boolean(data.hatched));
    this.rows = data.panels.map((panel) => rowsOf(panel));
    this.legend(data.legend);
    this.draw();
    this.reveal();
    this.pointer?.again();
  }

  // What was just selected is in sight, or the first of it, where lanes have to be scrolled to.
  reveal() {
    const selected = JSON.stringify(this.data.panels.map((panel) => panel.selected));
    if (selected === this.revealed || !this.svg) return;
    this.revealed = selected;
    const { scrollTop } = this.frame, end = scrollTop + this.frame.clientHeight - this.sizes.axis;
    const found = [...this.svg.querySelectorAll("rect.selected")].map((box) => [Number(box.getAttribute("y")), Number(box.getAttribute("height"))]);
    if (!found.length || found.some(([top, tall]) => top >= scrollTop && top + tall <= end)) return;
    this.frame.scrollTop = found[0][0] - this.sizes.title;
  }

  // How many lanes are out of sight stands beside the axis, which never is.
  tellMore() {
    const said = this.frame.querySelector(".axis .more");
    if (!said) return;
    const top = this.frame.scrollTop, foot = top + this.frame.clientHeight - this.sizes.axis;
    const lanes = this.rows.flatMap((rows, i) => rows.filter((row) => row.device).map((row) => {
      const lane = this.spreads[i].spots[row.index];
      return [this.tops[i] + lane.top, this.tops[i] + lane.top + lane.tall];
    }));
    const out = lanes.filter(([from, to]) => from < top - 1 || to > foot + 1);
    said.textContent = out.length ? `+${out.length} ${out.some(([, to]) => to > foot + 1) ? "▾" : "▴"}` : "";
  }

  // Drawn over what is, on the axis of what is: nothing else moves.
  foretell(answer) {
    this.future.show(answer?.bars, answer?.text);
    const { shown } = consequences;
    if (answer?.bars) requestAnimationFrame(() => requestAnimationFrame(() => shown === answer && performance.mark("placement-foretold")));
  }

  legend(entries) {
    this.root.querySelector(".legend").replaceChildren(
      ...entries.map(({ mark, colour, text }) => {
        const entry = html("span", "entry");
        const swatch = html("span", `swatch ${mark}`);
        if (colour) swatch.style.setProperty("--colour", colour);
        entry.append(swatch, text);
        return entry;
      }),
    );
  }

  // The number of the panel whose bars can be dragged; -1 for none.
  get editable() {
    return this.data.panels.findIndex((panel) => panel.key === this.data.editable);
  }

  isFolded(device) {
    const most = Math.max(...this.rows.map((rows) => rows.filter((row) => !row.device).length));
    return folds.get(device) ?? (most > MOST_LINKS || this.isCramped);
  }

  fold(device) {
    folds.set(device, !this.isFolded(device));
    this.draw();
  }

  // All at once: folded unless they are already.
  foldAll() {
    const names = this.rows.flat().filter((row) => row.links).map((row) => row.name);
    const folded = names.some((name) => !this.isFolded(name));
    for (const name of names) folds.set(name, folded);
    this.draw();
  }

  // Where each row of a panel is, from its top on, and how tall; folded links share a strip.
  spread(number) {
    const spots = [];
    const { row: lane, strip: slim, title, gap } = this.sizes;
    let top = title, strip = null;
    for (const row of this.rows[number]) {
      const folded = row.owner !== null && this.isFolded(row.owner);
      if (row.device) strip = null;
      const shares = folded && strip !== null;
      const tall = folded ? slim : lane;
      if (folded && !shares) strip = top;
      spots[row.index] = { top: shares ? strip : top, tall, folded };
      if (!shares) top += tall;
    }
    return { spots, tall: top + gap };
  }

  within(from, to) {
    const span = Math.min(this.end, Math.max(to - from, this.end / MOST_ZOOM));
    const start = Math.min(Math.max(0, from), this.end - span);
    return [start, span === this.end ? this.end : start + span];
  }

  look(from, to) {
    [this.from, this.to] = this.within(from, to);
    this.draw();
  }

  // As long as what is drawn, which may be shorter than what was.
  whole() {
    this.end = this.longest;
    this.look(0, this.end);
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.look(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) {
    const by = (this.to - this.from) * share;
    this.look(this.from + by, this.to + by);
  }

  x(seconds) {
    return this.left + ((seconds - this.from) / (this.to - this.from)) * this.plot;
  }

  seconds(x) {
    return this.from + ((x - this.left) / this.plot) * (this.to - this.from);
  }

  get isPresented() {
    return getComputedStyle(this.root).getPropertyValue("--timeline-fits").trim() === "1";
  }

  // Pixels of the screen from the upper edge to where its place ends; 0 where it may be scrolled to.
  room() {
    if (!this.data?.fits && !this.isPresented) return 0;
    if (!this.scroller?.isConnected) {
      this.scroller = scrollerOf(this.root);
      if (this.scroller) this.watcher.observe(this.scroller);
    }
    if (!this.scroller) return 0;
    const above = this.root.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    return Math.round(this.scroller.clientHeight - above - this.scroller.scrollTop);
  }

  // Cause and effect are seen together: all lanes and the axis are made to stand in the place there
  // is. They get lower where they must, links are strips then, and letters before an audience somewhat
  // smaller. What is taller still scrolls above its axis, in letters as large as ever.
  fit() {
    this.fitted = this.room();
    this.isCramped = false;
    const fits = this.fitted >= 40, { style } = this.frame;
    style.minHeight = "";
    if (!fits) style.maxHeight = "";
    this.root.style.zoom = "";
    if (!fits) this.tall(1);
    else if (this.isPresented) {
      // Lanes get lower before letters get smaller, which are read from the last row of seats.
      this.isCramped = this.fitted / this.tall(1) < 1;
      const most = Number(getComputedStyle(this.root).getPropertyValue("--timeline-text")) || 1;
      const whole = this.fitted / this.tall(LEAST_LANES);
      const zoom = whole < LEAST_TEXT ? most : Math.min(most, whole);
      this.root.style.zoom = zoom.toFixed(3);
      this.lower(this.fitted / zoom);
    } else {
      const room = this.fitted - this.root.querySelector(".head").offsetHeight - 2;
      this.isCramped = this.tall(EASY_LANES) > room;
      const left = room - this.lower(room), below = this.root.querySelector(".help").offsetHeight;
      // What is said below is in sight whole, or not before somebody scrolls.
      if (left < below) style.minHeight = `${room}px`;
    }
  }

  // Lanes as high as leaves all of them so much room, if any height does, else as high as their names
  // need; what they take.
  lower(room) {
    let share = 1;
    while (share > LEAST_LANES && this.tall(share) > room) share = Math.max(LEAST_LANES, share - 0.02);
    // A part of a pixel is none.
    if (this.tall(share) > room + 0.5) share = CLEAR_LANES;
    this.frame.style.maxHeight = `${Math.max(room, 3 * this.sizes.row)}px`;
    return this.tall(share);
  }

  // Of all panels with their axis, where lanes have a share of their usual height.
  tall(share) {
    this.sizes = sizesAt(share);
    this.spreads = this.data.panels.map((panel, i) => this.spread(i));
    return this.spreads.reduce((sum, spread) => sum + spread.tall, this.sizes.axis + 4);
  }

  draw() {
    if (!this.data || this.frame.clientWidth < LEAST_WIDTH) return;
    this.fit();
    const width = this.frame.clientWidth;
    this.width = width;
    this.pointer?.drop();
    const shown = this.rows.flatMap((rows, i) => rows.filter((row) => !this.spreads[i].spots[row.index].folded));
    const longest = Math.max(4, ...shown.map((row) => row.name.length));
    // Short names are whole however narrow it is.
    this.left = Math.min(36 + longest * 7, Math.max(width * 0.24, 80));
    this.plot = width - this.left - RIGHT;
    const tall = this.spreads.map((spread) => spread.tall);
    const height = tall.reduce((sum, h) => sum + h, 0);
    const svg = node("svg", { width, height, role: "img", "aria-label": this.data.label });
    svg.append(this.definitions());
    const grid = node("g", { class: "grid" });
    svg.append(grid);
    let top = 0;
    this.tops = [];
    this.data.panels.forEach((panel, i) => {
      this.tops.push(top);
      svg.append(this.panel(panel, top, i));
      top += tall[i];
    });
    const axis = node("svg", { width, height: this.sizes.axis, class: "axis", "aria-hidden": "true" });
    axis.append(this.axis(grid, top));
    svg.append(this.targets(top));
    this.frame.replaceChildren(svg, axis);
    this.svg = svg;
    this.tellMore();
    this.clearTargets();
    this.past.draw();
    this.future.draw();
    this.root.dataset.zoomed = String(this.to - this.from < this.end * 0.9999);
    this.root.dataset.from = this.from;
    this.root.dataset.to = this.to;
    this.root.querySelector('[data-do="whole"]').disabled =
      this.root.dataset.zoomed === "false" && this.end <= this.longest;
  }

  definitions() {
    const made = node("defs");
    const hatch = node("pattern", {
      id: "idle", width: 6, height: 6, patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    });
    hatch.append(node("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch" }));
    for (const row of this.hatches()) made.append(row);
    const clip = node("clipPath", { id: "plot" });
    clip.append(node("rect", { x: this.left, y: 0, width: this.plot, height: 1e5 }));
    made.append(hatch, clip);
    return made;
  }

  // The hatch of each device, as in the picture, where devices are told apart by hatches.
  hatches() {
    if (!this.data.hatched) return [];
    const inks = new Map(this.data.panels.flatMap(({ bars }, number) => bars.map((bar) => [hatchId(number, bar.row), bar.ink])));
    return this.data.panels.flatMap(({ rows }, number) =>
      rows.map(({ pattern }, row) => ({ id: hatchId(number, row), pattern })).filter(({ id, pattern }) => pattern && inks.has(id)).map(({ id, pattern }) => {
        const tile = node("pattern", { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" });
        tile.append(node("path", { d: pattern, class: "stroke", stroke: inks.get(id) }));
        return tile;
      }),
    );
  }

  panel(panel, top, number) {
    const group = node("g", { class: "panel", "data-panel": panel.key });
    const { sizes } = this, middle = sizes.row / 2 + 4;
    const title = node("text", { x: 4, y: top + sizes.title / 2 + 4, class: "title" }, panel.title);
    if (panel.note) title.append(Object.assign(node("tspan", { dx: NOTE_GAP, class: "note" }, panel.note), { words: panel.note }));
    group.append(title);
    const { spots } = this.spreads[number];
    const y = (row) => top + spots[row].top, slim = (row) => spots[row].folded;
    for (const row of this.rows[number]) {
      if (row.links) group.append(this.knob(row, y(row.index)));
      if (slim(row.index)) continue;
      const label = node("text", { x: this.left - 8, y: y(row.index) + middle, class: row.device ? "row" : "row link" });
      const room = Math.floor((this.left - 28) / 6.6);
      label.textContent = row.name.length > room ? `${row.name.slice(0, room - 1)}…` : row.name;
      label.append(node("title", {}, `${row.name}: ${row.about}`));
      group.append(label);
    }
    const plot = node("g", { "clip-path": "url(#plot)" });
    for (const [row, start, end] of panel.idle) {
      this.box(plot, y(row), start, end, { class: "idle", "data-tip": `${panel.rows[row].name} idle` });
    }
    const selected = new Set(panel.selected), over = [];
    panel.bars.forEach((bar, i) => {
      const box = this.box(plot, y(bar.row), bar.start_s, bar.end_s, {
        class: bar.ghost ? "bar alternative" : bar.path ? "bar path" : "bar", fill: bar.colour,
        "data-panel": number, "data-bar": i,
      }, slim(bar.row));
      if (!box) return;
      if (this.canMove(number, i)) box.classList.add("movable");
      if (this.data.hatched && panel.rows[bar.row].pattern && !bar.ghost) this.hatch(plot, box, hatchId(number, bar.row));
      if (selected.has(i)) {
        const outline = box.cloneNode();
        outline.setAttribute("class", "selected");
        outline.removeAttribute("fill");
        // Around the bar, whose own edge says whether it is on the critical path.
        for (const side of ["x", "y"]) outline.setAttribute(side, Number(box.getAttribute(side)) - 2);
        for (const side of ["width", "height"]) outline.setAttribute(side, Number(box.getAttribute(side)) + 4);
        over.push(outline);
      }
      const [left, wide] = [Number(box.getAttribute("x")), Number(box.getAttribute("width"))];
      const centre = (Math.max(left, this.left) + Math.min(left + wide, this.width - RIGHT)) / 2;
      const room = Math.floor((Math.min(left + wide, this.width) - Math.max(left, this.left) - 8) / 6.4);
      if (bar.text && !slim(bar.row) && room >= Math.min(bar.text.length, 4)) {
        const text = bar.text.length > room ? `${bar.text.slice(0, room - 1)}…` : bar.text;
        const size = `font-size:${sizes.letters}px`;
        const at = { x: centre, y: y(bar.row) + sizes.pad + sizes.bar / 2 + 0.36 * sizes.letters };
        plot.append(node("text", { ...at, class: "inside", style: bar.ghost ? size : `fill:${bar.ink};--glow:${bar.colour};${size}` }, text));
      }
    });
    plot.append(...over, this.chain(panel, y, slim));
    group.append(plot);
    return group;
  }

  // Opens and closes the links of a device.
  knob(row, y) {
    const folded = this.isFolded(row.name);
    const said = `${folded ? "Show" : "Fold"} the ${row.links === 1 ? "link" : `${row.links} links`} of ${row.name}`;
    const knob = node("g", {
      class: "knob", "data-fold": row.name, tabindex: 0, role: "button",
      "aria-expanded": String(!folded), "aria-label": said,
    });
    knob.append(
      node("title", {}, said), node("rect", { x: 1, y: y + 2, width: 20, height: this.sizes.row - 4 }),
      node("text", { x: 11, y: y + this.sizes.row / 2 + 4 }, folded ? "▸" : "▾"),
    );
    return knob;
  }

  // Bars of devices stand for ops that can go elsewhere, those of links do not.
  canMove(number, i) {
    const panel = this.data.panels[number];
    return number === this.editable && panel.rows[panel.bars[i].row].sender === null;
  }

  // Strokes over a bar, which stays what is pointed at.
  hatch(into, box, id) {
    const over = node("rect", { class: "hatching", fill: `url(#${id})` });
    for (const name of ["x", "y", "width", "height"]) over.setAttribute(name, box.getAttribute(name));
    into.append(over);
  }

  // Nothing at all where it lies outside of what is zoomed into.
  box(into, y, start, end, attributes, slim = false) {
    if (end < this.from || start > this.to) return null;
    const left = Math.max(this.x(start), this.left - 20), right = Math.min(this.x(end), this.width + 20);
    const width = Math.max(LEAST_PX, right - left);
    const { pad, bar, slim: low } = this.sizes;
    const made = node("rect", { x: left, y: y + (slim ? 1 : pad), width, height: slim ? low : bar, ...attributes });
    made.dataset.start = start;
    made.dataset.end = end;
    into.append(made);
    return made;
  }

  // The critical path: below its bars, and straight up or down where it goes on elsewhere.
  chain(panel, y, slim) {
    const group = node("g", { class: "chain" }), { sizes } = this;
    let before = null;
    // On top of the lines: where the path went on without data, in the queue of a device or link.
    const turns = [];
    for (const [row, start, end, kind, queued] of panel.path) {
      const middle = y(row) + (slim(row) ? sizes.slim + 2.5 : sizes.pad + sizes.bar + 1.5);
      if (before !== null && before !== middle) {
        group.append(node("line", { x1: this.x(start), y1: before, x2: this.x(start), y2: middle }));
      }
      group.append(
        node("line", { x1: this.x(start), y1: middle, x2: this.x(end), y2: middle, class: kind }),
      );
      if (queued) turns.push(node("circle", { cx: this.x(start), cy: middle, r: 3.6 }));
      before = middle;
    }
    group.append(...turns);
    return group;
  }

  // Lines to get below. Lines may be close together, so their words stand in a row, in their order.
  targets(bottom) {
    const group = node("g", { class: "targets" });
    const sorted = [...(this.data.targets ?? [])].sort((a, b) => a.at_s - b.at_s);
    for (const { at_s, text } of sorted) {
      if (at_s < this.from || at_s > this.to) continue;
      const line = node("line", { x1: this.x(at_s), y1: 18, x2: this.x(at_s), y2: bottom, "data-at": at_s });
      line.append(node("title", {}, text));
      group.append(line);
    }
    const said = sorted.map(({ text }) => text).join(" · ");
    if (said) group.append(node("text", { x: this.width - RIGHT, y: 14, "text-anchor": "end" }, said));
    return group;
  }

  showTargets(shown) {
    this.svg?.querySelector(".targets > text")?.setAttribute("visibility", shown ? "visible" : "hidden");
  }

  // Words about targets stand at the end of the first title's line, in the place of a note that would
  // leave them no room.
  clearTargets() {
    const said = this.svg.querySelector(".targets > text"), title = this.svg.querySelector(".panel > .title");
    if (!said || !title) return;
    const note = title.querySelector(".note"), box = title.getBBox();
    if (!note || box.x + box.width + 12 <= said.getBBox().x) return;
    note.remove();
  }

  // Notes end before what is told of other timelines, or with the line, with dots where not all of their
  // words have room; these are in the tooltip. Where nothing is laid out, nothing can be measured.
  fitNotes() {
    if (!this.svg || this.frame.clientWidth < LEAST_WIDTH) return;
    const { from } = this.future.bars ? this.future : this.past;
    this.svg.querySelectorAll(".panel > .title").forEach((title, number) => {
      const note = title.querySelector(".note"), end = number ? this.width - RIGHT : Math.min(this.width - RIGHT, from - 12);
      if (note) shorten(note, note.words, end - endOf(title) - NOTE_GAP);
    });
  }

  // Lines go into the grid; the numbers below them are in sight whatever is scrolled.
  axis(grid, bottom) {
    const numbers = node("g", { class: "grid" }), { axis, title } = this.sizes;
    const range = this.to - this.from, [scale, unit] = unitOf(range);
    const step = tickStep(range / scale, this.plot / 90) * scale;
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / scale) + 1e-9)));
    for (let n = Math.ceil(this.from / step - 1e-9); n * step <= this.to * (1 + 1e-9); n += 1) {
      const x = this.x(n * step);
      grid.append(node("line", { x1: x, y1: title, x2: x, y2: bottom }));
      numbers.append(node("text", { x, y: 12 }, ((n * step) / scale).toFixed(digits)));
    }
    const name = `${unit} since ${this.data.began} began`, low = axis < AXIS;
    // In one line with the numbers there is room for the unit alone.
    const label = node("text", low ? { x: this.left - 20, y: 12, class: "unit low" } : { x: this.left + this.plot / 2, y: 26, class: "unit" }, low ? unit : name);
    if (low) label.append(node("title", {}, name));
    numbers.append(label, node("text", { x: 4, y: low ? 12 : 26, class: "more" }));
    return numbers;
  }
}

const AXIS = 30;
const hatchId = (panel, row) => `hatch-${panel}-${row}`;

// Pixels of what a timeline is made of, where lanes have a share of their usual height.
function sizesAt(share) {
  const row = 24 * share, bar = row - Math.max(4.5, 7 * share);
  return {
    row, bar, pad: Math.max(2, 3 * share), letters: Math.min(11, bar - 0.5),
    strip: 10 * share, slim: Math.max(3, 5 * share), title: Math.max(16, 24 * share),
    gap: 10 * share - (share < 1 ? 2 : 0), axis: share < EASY_LANES ? 16 : AXIS,
  };
}

// The rows of a panel as they are drawn: each device, then the links that it sends over.
function rowsOf(panel) {
  const rows = panel.rows.map((row, index) => ({ ...row, index, device: row.sender === null, owner: null, links: 0 }));
  const drawn = rows.filter((row) => row.device).flatMap((device) => {
    const own = rows.filter((row) => row.sender === device.index);
    device.links = own.length;
    return [device, ...own.map((row) => ({ ...row, owner: device.name }))];
  });
  return [...drawn, ...rows.filter((row) => row.sender === -1)];
}

export default function ({ data, parentElement, setStateValue }) {
  let gantt = alive.get(parentElement);
  if (!gantt || !gantt.root.isConnected) {
    gantt?.close();
    gantt = new Gantt(parentElement);
    alive.set(parentElement, gantt);
  }
  gantt.show(data, (picks) => setStateValue("picks", picks));
  const generation = (gantt.generation = (gantt.generation ?? 0) + 1);
  return () => {
    if (gantt.generation !== generation) return;
    gantt.close();
    alive.delete(parentElement);
  };
}
