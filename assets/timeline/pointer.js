// What a person's hands do to timelines: zoom, move along, point at a bar, click it.

const NEAR_PX = [0, 2, -2, 4, -4], CLICK_PX = 4, STEP = 1.5;

class Pointer {
  constructor(gantt) {
    this.gantt = gantt;
    this.tip = gantt.root.querySelector(".tip");
    this.listen();
  }

  listen() {
    const { gantt } = this, { root, frame } = gantt;
    const whole = () => gantt.look(0, gantt.end);
    const verbs = {
      in: () => gantt.zoom(1 / STEP), out: () => gantt.zoom(STEP), whole,
      left: () => gantt.pan(-0.25), right: () => gantt.pan(0.25),
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
    frame.addEventListener("dblclick", whole);
  }

  at(event) {
    return event.clientX - this.gantt.frame.getBoundingClientRect().left;
  }

  // The bar under the pointer, or close beside it: a short one is hard to hit.
  under(event) {
    const tree = this.gantt.root.getRootNode();
    const found = NEAR_PX.map((by) => tree.elementFromPoint(event.clientX + by, event.clientY));
    return found.find((element) => element?.dataset?.bar !== undefined) ?? event.target ?? {};
  }

  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.gantt.zoom(event.deltaY > 0 ? STEP : 1 / STEP, this.gantt.seconds(this.at(event)));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.gantt.pan(Math.sign(sideways) * 0.1);
    }
  }

  press(event) {
    if (event.button !== 0 || !this.gantt.svg) return;
    this.pressed = { x: this.at(event), target: this.under(event) };
  }

  move(event) {
    if (!this.pressed) return this.hover(event);
    const x = this.at(event), { x: start } = this.pressed;
    if (Math.abs(x - start) < CLICK_PX) return;
    this.tip.hidden = true;
    if (!this.band) {
      frameCapture(this.gantt.frame, event.pointerId);
      this.band = node("rect", { class: "band", y: 0, height: this.gantt.svg.getAttribute("height") });
      this.gantt.svg.append(this.band);
    }
    const [a, b] = this.between(start, x);
    this.band.setAttribute("x", a);
    this.band.setAttribute("width", b - a);
  }

  between(a, b) {
    const { left, plot } = this.gantt;
    const inside = (x) => Math.min(Math.max(x, left), left + plot);
    return [inside(Math.min(a, b)), inside(Math.max(a, b))];
  }

  release(event) {
    const { pressed, band, gantt } = this;
    this.drop();
    if (!pressed) return;
    if (band) {
      const [a, b] = this.between(pressed.x, this.at(event));
      if (b - a >= CLICK_PX) gantt.look(gantt.seconds(a), gantt.seconds(b));
    } else if (pressed.target.dataset?.bar !== undefined && gantt.data.pickable) {
      gantt.root.focus({ preventScroll: true });
      const { panel, bar } = pressed.target.dataset;
      const add = event.ctrlKey || event.metaKey || event.shiftKey;
      const { key, version } = gantt.data.panels[panel];
      gantt.outbox.push({ kind: "pick", panel: key, version, bar: Number(bar), add });
    }
  }

  drop() {
    this.pressed = null;
    this.band?.remove();
    this.band = null;
  }

  // Other bars may be drawn now under a pointer that rests.
  again() {
    if (!this.tip.hidden && this.last) this.hover(this.last);
  }

  hover(event) {
    this.last = { clientX: event.clientX, clientY: event.clientY };
    const { gantt } = this, { dataset } = this.under(event);
    if (dataset?.start === undefined) {
      this.tip.hidden = true;
      return;
    }
    const when = `${secondsText(dataset.end - dataset.start)}, from ${secondsText(Number(dataset.start))} on`;
    const bar = dataset.bar === undefined ? null : gantt.data.panels[dataset.panel].bars[dataset.bar];
    const lines = bar ? [bar.tip[0], when, ...bar.tip.slice(1)] : [dataset.tip, when];
    this.tip.replaceChildren(...lines.map((line, i) => html("div", i ? "line" : "line first", line)));
    this.tip.hidden = false;
    const box = gantt.root.getBoundingClientRect();
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
