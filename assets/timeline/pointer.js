// What a person's hands do to timelines: zoom, move along, point at a bar, click it, drag it.

const NEAR_PX = [0, 2, -2, 4, -4], CLICK_PX = 4, STEP = 1.5;

class Pointer {
  constructor(gantt) {
    this.gantt = gantt;
    this.tip = gantt.root.querySelector(".tip");
    this.heldKey = new HeldKey(
      (device) => gantt.data.asks && consequences.ask({ device, nodes: null }),
      (device) => gantt.outbox.push({ kind: "assign", device }),
    );
    this.listen();
  }

  listen() {
    const { gantt } = this, { root, frame } = gantt;
    const whole = () => gantt.whole();
    const verbs = {
      in: () => gantt.zoom(1 / STEP), out: () => gantt.zoom(STEP), whole,
      left: () => gantt.pan(-0.25), right: () => gantt.pan(0.25), fold: () => gantt.foldAll(),
    };
    const keys = { "+": "in", "=": "in", "-": "out", 0: "whole", ArrowLeft: "left", ArrowRight: "right", l: "fold" };
    for (const button of root.querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => verbs[button.dataset.do]());
    }
    root.addEventListener("keydown", (event) => {
      // Streamlit has shortcuts of its own for plain letters.
      event.stopPropagation();
      if (event.key === "Escape") this.drop();
      if (this.heldKey.isDown) {
        if (event.repeat) return;
        if (event.key === "Escape") {
          this.heldKey.drop();
          return;
        }
        this.heldKey.finish();
      }
      const device = event.target.closest?.("[data-fold]")?.dataset.fold;
      const edit = gantt.data?.editable ? editOf(event) : null;
      const place = gantt.data?.editable && !modified(event) ? deviceOfKey(event) : undefined;
      if (device !== undefined && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        this.fold(device);
        return;
      }
      if (place !== undefined) {
        event.preventDefault();
        this.heldKey.down(event, place);
        return;
      }
      if (edit) {
        event.preventDefault();
        gantt.outbox.push(edit);
        return;
      }
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

  // The knob is drawn anew and keeps the focus.
  fold(device) {
    this.gantt.fold(device);
    const knobs = [...this.gantt.root.querySelectorAll("[data-fold]")];
    knobs.find((knob) => knob.dataset.fold === device)?.focus({ preventScroll: true });
  }

  at(event) {
    const { frame } = this.gantt;
    return (event.clientX - frame.getBoundingClientRect().left) / zoomOf(frame);
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
    const target = this.under(event), { panel, bar } = target.dataset ?? {};
    const movable = bar !== undefined && !event.shiftKey && this.gantt.canMove(Number(panel), Number(bar));
    const drag = movable ? new BarDrag(this.gantt, Number(panel), Number(bar), event) : null;
    this.pressed = { x: this.at(event), target, drag };
  }

  move(event) {
    if (!this.pressed) return this.hover(event);
    const x = this.at(event), { x: start, drag } = this.pressed;
    if (drag) {
      if (!drag.isUnderWay && !drag.isFar(event)) return;
      this.tip.hidden = true;
      frameCapture(this.gantt.frame, event.pointerId);
      drag.to(event);
      return;
    }
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
    const dropped = pressed?.drag?.isUnderWay, told = dropped ? pressed.drag.told() : null;
    this.drop();
    if (!pressed) return;
    const knob = pressed.target.closest?.("[data-fold]");
    if (dropped) {
      gantt.root.focus({ preventScroll: true });
      if (told) gantt.outbox.push(told);
    } else if (knob && !band) {
      this.fold(knob.dataset.fold);
    } else if (band) {
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
    this.pressed?.drag?.end();
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
    const zoom = zoomOf(gantt.root), [wide, tall] = [box.width / zoom, box.height / zoom];
    const x = (event.clientX - box.left) / zoom, y = (event.clientY - box.top) / zoom;
    const left = x + 16 + this.tip.offsetWidth > wide ? x - this.tip.offsetWidth - 12 : x + 16;
    this.tip.style.left = `${Math.max(4, left)}px`;
    this.tip.style.top = `${Math.min(y + 14, Math.max(4, tall - this.tip.offsetHeight - 4))}px`;
  }
}

function modified(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

// What a key asks for, of those that change the placement; the same keys as in the picture.
function editOf(event) {
  const letter = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) {
    if (letter === "z") return { kind: event.shiftKey ? "redo" : "undo" };
    return letter === "y" ? { kind: "redo" } : null;
  }
  if (event.altKey) return null;
  if (letter === "u") return { kind: event.shiftKey ? "redo" : "undo" };
  if (letter === "p") return { kind: "pin" };
  if (letter === "o") return { kind: "pin_order" };
  return event.key === "Delete" ? { kind: "unpin" } : null;
}

function frameCapture(frame, pointer) {
  try {
    frame.setPointerCapture(pointer);
  } catch {
    // The pointer is gone already.
  }
}
