// Timelines one above the other on one time axis: zoom, hover, click.
//
// Drawn as SVG from bars that Python has made; all text is set as text, whatever a model file says.
// What is zoomed into stays while Python sends other bars or another selection.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 24, BAR = 17, TITLE = 24, AXIS = 30, GAP = 10, RIGHT = 14;
const LEAST_PX = 2, NEAR_PX = [0, 2, -2, 4, -4], CLICK_PX = 4, MOST_ZOOM = 1e5, STEP = 1.5;
const alive = (globalThis.__placementGantt ??= new WeakMap());

function node(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

function html(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

// A unit in which the numbers of a range are easy to read.
function unitOf(range) {
  if (range >= 2) return [1, "s"];
  return range >= 2e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
}

function tickStep(range, most) {
  const rough = range / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
}

class Gantt {
  constructor(parent) {
    this.root = parent.querySelector(".gantt");
    this.frame = this.root.querySelector(".frame");
    this.tip = this.root.querySelector(".tip");
    this.from = 0;
    this.to = 1;
    this.width = 0;
    this.outbox = new Outbox();
    this.listen();
    this.watcher = new ResizeObserver(() => {
      if (this.frame.clientWidth !== this.width) this.draw();
    });
    this.watcher.observe(this.frame);
  }

  close() {
    this.watcher.disconnect();
    this.outbox.close();
  }

  show(data, send) {
    this.outbox.send = send;
    this.outbox.acknowledge(data.session, data.ack);
    const end = Math.max(1e-12, ...data.panels.map((panel) => panel.end_s));
    const whole = !this.data || (this.from === 0 && this.to === this.end);
    this.data = data;
    this.end = end;
    if (whole || data.of !== this.of) [this.from, this.to] = [0, end];
    this.of = data.of;
    [this.from, this.to] = this.within(this.from, this.to);
    this.root.querySelector(".help").textContent = data.help;
    this.legend(data.legend);
    this.draw();
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

  within(from, to) {
    const span = Math.min(this.end, Math.max(to - from, this.end / MOST_ZOOM));
    const start = Math.min(Math.max(0, from), this.end - span);
    return [start, span === this.end ? this.end : start + span];
  }

  look(from, to) {
    [this.from, this.to] = this.within(from, to);
    this.draw();
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

  draw() {
    const width = this.frame.clientWidth;
    if (!this.data || width < 80) return;
    this.width = width;
    const longest = Math.max(4, ...this.data.panels.flatMap((p) => p.rows.map((r) => r.name.length)));
    this.left = Math.min(24 + longest * 7, width * 0.24);
    this.plot = width - this.left - RIGHT;
    const tall = this.data.panels.map((p) => TITLE + p.rows.length * ROW + GAP);
    const height = tall.reduce((sum, h) => sum + h, 0) + AXIS;
    const svg = node("svg", { width, height, role: "img", "aria-label": this.data.label });
    svg.append(this.definitions());
    const grid = node("g", { class: "grid" });
    svg.append(grid);
    let top = 0;
    this.data.panels.forEach((panel, i) => {
      svg.append(this.panel(panel, top, i));
      top += tall[i];
    });
    this.axis(grid, top);
    this.frame.replaceChildren(svg);
    this.svg = svg;
    this.root.dataset.zoomed = String(this.to - this.from < this.end * 0.9999);
    this.root.dataset.from = this.from;
    this.root.dataset.to = this.to;
    this.root.querySelector('[data-do="whole"]').disabled = this.root.dataset.zoomed === "false";
  }

  definitions() {
    const made = node("defs");
    const hatch = node("pattern", {
      id: "idle", width: 6, height: 6, patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    });
    hatch.append(node("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch" }));
    const clip = node("clipPath", { id: "plot" });
    clip.append(node("rect", { x: this.left, y: 0, width: this.plot, height: 1e5 }));
    made.append(hatch, clip);
    return made;
  }

  panel(panel, top, number) {
    const group = node("g", { class: "panel", "data-panel": panel.key });
    const title = node("text", { x: 4, y: top + 16, class: "title" }, panel.title);
    if (panel.note) title.append(node("tspan", { dx: 10, class: "note" }, panel.note));
    group.append(title);
    const y = (row) => top + TITLE + row * ROW;
    panel.rows.forEach((row, i) => {
      const label = node("text", { x: this.left - 8, y: y(i) + 16, class: "row" });
      const room = Math.floor((this.left - 16) / 6.6);
      label.textContent = row.name.length > room ? `${row.name.slice(0, room - 1)}…` : row.name;
      label.append(node("title", {}, `${row.name}: ${row.about}`));
      group.append(label);
    });
    const plot = node("g", { "clip-path": "url(#plot)" });
    for (const [row, start, end] of panel.idle) {
      this.box(plot, y(row), start, end, { class: "idle", "data-tip": `${panel.rows[row].name} idle` });
    }
    const selected = new Set(panel.selected), over = [];
    panel.bars.forEach((bar, i) => {
      const box = this.box(plot, y(bar.row), bar.start_s, bar.end_s, {
        class: bar.path ? "bar path" : "bar", fill: bar.colour,
        "data-panel": number, "data-bar": i,
      });
      if (!box) return;
      if (selected.has(i)) {
        const outline = box.cloneNode();
        outline.setAttribute("class", "selected");
        outline.removeAttribute("fill");
        over.push(outline);
      }
      const [left, wide] = [Number(box.getAttribute("x")), Number(box.getAttribute("width"))];
      const middle = (Math.max(left, this.left) + Math.min(left + wide, this.width - RIGHT)) / 2;
      const room = Math.floor((Math.min(left + wide, this.width) - Math.max(left, this.left) - 8) / 6.4);
      if (bar.text && room >= Math.min(bar.text.length, 4)) {
        const text = bar.text.length > room ? `${bar.text.slice(0, room - 1)}…` : bar.text;
        plot.append(node("text", { x: middle, y: y(bar.row) + 15.5, class: "inside", style: `fill:${bar.ink}` }, text));
      }
    });
    plot.append(this.chain(panel, y), ...over);
    group.append(plot);
    return group;
  }

  // Nothing at all where it lies outside of what is zoomed into.
  box(into, y, start, end, attributes) {
    if (end < this.from || start > this.to) return null;
    const left = Math.max(this.x(start), this.left - 20), right = Math.min(this.x(end), this.width + 20);
    const width = Math.max(LEAST_PX, right - left);
    const made = node("rect", { x: left, y: y + 3, width, height: BAR, ...attributes });
    made.dataset.start = start;
    made.dataset.end = end;
    into.append(made);
    return made;
  }

  // The critical path: below its bars, and straight up or down where it goes on elsewhere.
  chain(panel, y) {
    const group = node("g", { class: "chain" });
    let before = null;
    for (const [row, start, end, kind] of panel.path) {
      const middle = y(row) + BAR + 4.5;
      if (before !== null && before !== middle) {
        group.append(node("line", { x1: this.x(start), y1: before, x2: this.x(start), y2: middle }));
      }
      group.append(
        node("line", { x1: this.x(start), y1: middle, x2: this.x(end), y2: middle, class: kind }),
      );
      before = middle;
    }
    return group;
  }

  axis(grid, bottom) {
    const range = this.to - this.from, [scale, unit] = unitOf(range);
    const step = tickStep(range / scale, this.plot / 90) * scale;
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / scale) + 1e-9)));
    for (let n = Math.ceil(this.from / step - 1e-9); n * step <= this.to * (1 + 1e-9); n += 1) {
      const x = this.x(n * step);
      grid.append(node("line", { x1: x, y1: TITLE, x2: x, y2: bottom }));
      grid.append(node("text", { x, y: bottom + 12 }, ((n * step) / scale).toFixed(digits)));
    }
    const name = `${unit} since ${this.data.began} began`;
    grid.append(node("text", { x: this.left + this.plot / 2, y: bottom + 26, class: "unit" }, name));
  }

  listen() {
    const { root, frame } = this;
    const verbs = {
      in: () => this.zoom(1 / STEP), out: () => this.zoom(STEP), whole: () => this.look(0, this.end),
      left: () => this.pan(-0.25), right: () => this.pan(0.25),
    };
    const keys = { "+": "in", "=": "in", "-": "out", 0: "whole", ArrowLeft: "left", ArrowRight: "right" };
    for (const button of root.querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => verbs[button.dataset.do]());
    }
    root.addEventListener("keydown", (event) => {
      // Streamlit has shortcuts of its own for plain letters.
      event.stopPropagation();
      const verb = event.ctrlKey || event.metaKey ? "" : keys[event.key];
      if (!verb) return;
      event.preventDefault();
      verbs[verb]();
    });
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.press(event));
    frame.addEventListener("pointermove", (event) => this.move(event));
    frame.addEventListener("pointerup", (event) => this.release(event));
    frame.addEventListener("pointercancel", () => this.drop());
    frame.addEventListener("pointerleave", () => (this.tip.hidden = true));
    frame.addEventListener("dblclick", () => this.look(0, this.end));
  }

  at(event) {
    return event.clientX - this.frame.getBoundingClientRect().left;
  }

  // The bar under the pointer, or close beside it: a short one is hard to hit.
  under(event) {
    const tree = this.root.getRootNode();
    const found = NEAR_PX.map((by) => tree.elementFromPoint(event.clientX + by, event.clientY));
    return found.find((element) => element?.dataset?.bar !== undefined) ?? event.target;
  }

  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? STEP : 1 / STEP, this.seconds(this.at(event)));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.pan(Math.sign(sideways) * 0.1);
    }
  }

  press(event) {
    if (event.button !== 0 || !this.svg) return;
    this.pressed = { x: this.at(event), target: this.under(event) };
  }

  move(event) {
    if (!this.pressed) return this.hover(event);
    const x = this.at(event), { x: start } = this.pressed;
    if (Math.abs(x - start) < CLICK_PX) return;
    this.tip.hidden = true;
    if (!this.band) {
      frameCapture(this.frame, event.pointerId);
      this.band = node("rect", { class: "band", y: 0, height: this.svg.getAttribute("height") });
      this.svg.append(this.band);
    }
    const [a, b] = this.between(start, x);
    this.band.setAttribute("x", a);
    this.band.setAttribute("width", b - a);
  }

  between(a, b) {
    const inside = (x) => Math.min(Math.max(x, this.left), this.left + this.plot);
    return [inside(Math.min(a, b)), inside(Math.max(a, b))];
  }

  release(event) {
    const { pressed, band } = this;
    this.drop();
    if (!pressed) return;
    if (band) {
      const [a, b] = this.between(pressed.x, this.at(event));
      if (b - a >= CLICK_PX) this.look(this.seconds(a), this.seconds(b));
    } else if (pressed.target.dataset?.bar !== undefined && this.data.pickable) {
      this.root.focus({ preventScroll: true });
      const { panel, bar } = pressed.target.dataset;
      const add = event.ctrlKey || event.metaKey || event.shiftKey;
      const { key, version } = this.data.panels[panel];
      this.outbox.push({ kind: "pick", panel: key, version, bar: Number(bar), add });
    }
  }

  drop() {
    this.pressed = null;
    this.band?.remove();
    this.band = null;
  }

  hover(event) {
    const { dataset } = this.under(event);
    if (dataset?.start === undefined) {
      this.tip.hidden = true;
      return;
    }
    const took = dataset.end - dataset.start, [scale, unit] = unitOf(took);
    const [since, of] = unitOf(this.end);
    const when = `${(took / scale).toPrecision(3)} ${unit}, from ${(dataset.start / since).toPrecision(4)} ${of} on`;
    const bar = dataset.bar === undefined ? null : this.data.panels[dataset.panel].bars[dataset.bar];
    const lines = bar ? [bar.tip[0], when, ...bar.tip.slice(1)] : [dataset.tip, when];
    this.tip.replaceChildren(...lines.map((line, i) => html("div", i ? "line" : "line first", line)));
    this.tip.hidden = false;
    const box = this.root.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const left = x + 16 + this.tip.offsetWidth > box.width ? x - this.tip.offsetWidth - 12 : x + 16;
    this.tip.style.left = `${Math.max(4, left)}px`;
    this.tip.style.top = `${Math.min(y + 14, Math.max(4, box.height - this.tip.offsetHeight - 4))}px`;
  }
}

function frameCapture(frame, pointer) {
  try {
    frame.setPointerCapture(pointer);
  } catch {
    // The pointer is gone already.
  }
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
