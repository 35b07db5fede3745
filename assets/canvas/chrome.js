// What stands around the drawing: device chips, tool buttons, the status and help lines.

const HELP =
  "Click, Ctrl-click or Shift-drag to select · 1–9 puts the selection on a device · " +
  "double-click opens or closes a block";

const GESTURES = [
  ["Click", "select an op, a block, or all inside an open block's title"],
  ["Ctrl-click", "add to the selection or take away"],
  ["Shift-drag, Alt-drag", "select with a box, with a lasso"],
  ["Arrow keys", "walk from op to op"],
  ["1 … 9", "put the selection on that device"],
  ["Drag onto a device", "the same with the mouse; clicking the device works too"],
  ["Double-click, Enter, ⌫", "open or close a block"],
  ["Right-click, M", "menu with all devices"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo (also U, Shift+U)"],
  ["Drag, wheel, + − F", "move, zoom, show everything"],
  ["Esc", "select nothing"],
];

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function button(label, title, action) {
  const made = element("button", "tool", label);
  made.type = "button";
  made.title = title;
  made.setAttribute("aria-label", title);
  made.addEventListener("click", (event) => {
    event.stopPropagation();
    action();
  });
  return made;
}

class Chrome {
  constructor(canvas) {
    this.canvas = canvas;
    this.root = element("div", "canvas");
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "application");
    this.root.setAttribute("aria-label", "Graph of the model, coloured by device");
    this.chips = element("div", "chips");
    this.chips.setAttribute("role", "group");
    this.chips.setAttribute("aria-label", "Devices");
    this.stage = element("div", "stage");
    this.drawing = element("div", "drawing");
    this.overlay = element("canvas", "overlay");
    this.note = element("div", "note");
    this.note.hidden = true;
    const [panel, question] = this.gestureList();
    this.stage.append(this.drawing, this.overlay, this.note, this.zoomTools(), panel);
    this.live = element("div", "live");
    this.live.setAttribute("aria-live", "polite");
    this.status = element("div", "status");
    this.foot = element("div", "foot");
    const help = element("div", "help", HELP);
    help.title = HELP;
    this.foot.append(this.status, help, question);
    this.head = element("div", "head");
    this.legend = new Legend(element("div", "legend"));
    this.head.append(this.chips, this.legend.row, this.tools());
    this.root.append(this.head, this.stage, this.foot, this.live);
    this.shownDevices = "";
  }

  tools() {
    const { canvas } = this;
    const row = element("div", "tools");
    row.setAttribute("role", "toolbar");
    row.setAttribute("aria-label", "Canvas tools");
    this.undo = button("↶", "Undo the last change (Ctrl+Z)", () => canvas.send({ kind: "undo" }));
    this.redo = button("↷", "Redo (Ctrl+Shift+Z)", () => canvas.send({ kind: "redo" }));
    this.lasso = button("Lasso", "Draw a lasso with the next drag (or Alt-drag)", () =>
      canvas.setLasso(!canvas.lassoNext),
    );
    this.lasso.setAttribute("aria-pressed", "false");
    row.append(
      this.undo,
      this.redo,
      element("span", "gap"),
      this.lasso,
      button("Open all", "Open all blocks, as far as they can be drawn", () =>
        canvas.send({ kind: "expand_all" }),
      ),
      button("Close all", "Close all blocks", () => canvas.send({ kind: "collapse_all" })),
    );
    return row;
  }

  zoomTools() {
    const { canvas } = this;
    const column = element("div", "zoom");
    column.setAttribute("role", "toolbar");
    column.setAttribute("aria-label", "Zoom");
    column.append(
      button("+", "Zoom in (+)", () => canvas.zoom(1.3)),
      button("−", "Zoom out (-)", () => canvas.zoom(1 / 1.3)),
      button("Fit", "Show everything (F)", () => canvas.fit(true)),
    );
    column.addEventListener("pointerdown", (event) => event.stopPropagation());
    return column;
  }

  gestureList() {
    const panel = element("div", "gestures");
    panel.id = "gestures";
    panel.hidden = true;
    const list = element("dl");
    for (const [what, means] of GESTURES) {
      list.append(element("dt", "", what), element("dd", "", means));
    }
    panel.append(list);
    const toggle = button("?", "What mouse and keys do here", () => {
      panel.hidden = !panel.hidden;
      toggle.setAttribute("aria-expanded", String(!panel.hidden));
    });
    toggle.setAttribute("aria-expanded", "false");
    toggle.setAttribute("aria-controls", panel.id);
    this.closeGestures = () => {
      panel.hidden = true;
      toggle.setAttribute("aria-expanded", "false");
    };
    return [panel, toggle];
  }

  // Chips are kept while the devices stay the same, so that one can be clicked or dropped on
  // while numbers change.
  showDevices({ devices, counts, hatched }, readOnly) {
    const key = JSON.stringify([devices.map(({ name, label }) => [name, label]), readOnly]);
    if (key !== this.shownDevices) {
      this.shownDevices = key;
      this.chips.replaceChildren(...devices.map((device, i) => this.chip(device, i, readOnly)));
    }
    [...this.chips.children].forEach((chip, i) => {
      const text = String(counts[i] ?? 0);
      const number = chip.querySelector(".count");
      if (number.textContent !== text) number.textContent = text;
      const { busy, memory } = devices[i];
      const told = chip.querySelector(".facts");
      const facts = busy ? [element("span", "word", "busy "), `${busy} · ${memory}`] : [];
      told.replaceChildren(...facts);
      told.title = `Predicted: computes for ${busy} of a step and holds at most ${memory}`;
      paintSwatch(chip.firstChild, devices[i].colour, hatched ? devices[i].pattern : "");
    });
    this.undo.disabled = readOnly;
    this.redo.disabled = readOnly;
  }

  chip(device, i, readOnly) {
    const chip = element("button", "chip");
    chip.type = "button";
    chip.dataset.device = String(i);
    chip.disabled = readOnly;
    const swatch = element("span", "swatch", i < 9 ? String(i + 1) : "");
    swatch.style.color = inkOn(device.colour);
    const count = element("span", "count");
    chip.append(swatch, element("span", "name", device.label), count, element("span", "unit", "ops"));
    chip.append(element("span", "facts"));
    const keyed = i < 9 ? ` (key ${i + 1})` : "";
    chip.title = `${device.name}: click or drop here to put the selection on it${keyed}`;
    chip.addEventListener("click", (event) => {
      event.stopPropagation();
      this.canvas.assignSelection(i);
      this.root.focus({ preventScroll: true });
    });
    return chip;
  }

  // A notice stays readable although repaints come meanwhile.
  notice(text) {
    clearTimeout(this.noticeTimer);
    this.status.textContent = text;
    this.noticeTimer = setTimeout(
      guarded(() => {
        this.noticeTimer = 0;
        this.showStatus(this.canvas.statusText());
      }),
      2500,
    );
  }

  clearNotice() {
    clearTimeout(this.noticeTimer);
    this.noticeTimer = 0;
  }

  showStatus(text) {
    if (this.noticeTimer) return;
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  say(text) {
    this.live.textContent = text;
  }

  showNote(text) {
    this.note.textContent = text;
    this.note.hidden = !text;
  }
}
