// What stands around the drawing: device chips, tool buttons, the status and help lines.

const HELP =
  "Click, Ctrl-click or Shift-drag to select · 1–9 or drag to a device to place · " +
  "double-click opens or closes a block";

const GESTURES = [
  ["Click, Ctrl-click", "select an op, a block or a title; add or take away"],
  ["Shift-drag, Alt-drag", "select with a box, with a lasso (also L)"],
  ["/", "search ops by name, type or regular expression"],
  ["Shift+↑, Shift+↓, A", "select all before, all after, all alike"],
  ["1 … 9", "put the selection on that device; hold to see first what comes of it (Esc: not)"],
  ["Drag onto a device", "the same with the mouse; clicking the device works too"],
  ["P, Del", "pin the selection where it is; unpin it"],
  ["O", "pin the order in which its device runs its ops"],
  ["Ctrl+Z, Ctrl+Y", "undo, redo (also U, Shift+U)"],
  ["Double-click, Enter, ⌫", "open or close a block"],
  ["Arrow keys, Space", "move the focus ring along edges; select what is in it"],
  ["Right-click, M", "menu of what can be done with the selection"],
  ["Drag, wheel, + − F", "move, zoom, show everything"],
  ["Esc", "cancel, then select nothing"],
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

function setText(box, text) {
  if (box.textContent !== text) box.textContent = text;
}

function chipTitle({ name, busy, memory }, i) {
  const told = busy
    ? ` (predicted: busy for ${busy}${memory ? `, holds at most ${memory}` : ""})`
    : "";
  const keyed = i < 9 ? `, or press ${i + 1}` : "";
  return `${name}${told}: click${keyed}, or drop here to put the selection on it`;
}

class Chrome {
  constructor(canvas) {
    this.canvas = canvas;
    this.root = element("div", "canvas");
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "application");
    this.root.setAttribute("aria-label", "Graph of the model, coloured by device");
    this.root.setAttribute("aria-roledescription", "graph editor; press ? for its keys");
    this.chips = element("div", "chips");
    this.chips.setAttribute("role", "group");
    this.chips.setAttribute("aria-label", "Devices");
    this.stage = element("div", "stage");
    this.drawing = element("div", "drawing");
    this.overlay = element("canvas", "overlay");
    this.note = element("div", "note");
    this.note.hidden = true;
    const [panel, question] = this.gestureList();
    this.laying = this.layingNote();
    this.stage.append(this.drawing, this.overlay, this.note, this.zoomTools(), panel, this.laying);
    this.live = element("div", "live");
    this.live.setAttribute("aria-live", "polite");
    this.status = element("div", "status");
    this.foot = element("div", "foot");
    const help = element("div", "help", HELP);
    help.title = HELP;
    this.foot.append(this.status, help, question);
    this.head = element("div", "head");
    this.legend = new Legend(element("div", "legend"));
    const places = element("div", "places");
    this.rests = [
      new Rest(places, this.chips, ".chip", "devices"),
      new Rest(this.legend.place, this.legend.row, ".key", "entries of the legend"),
    ];
    this.head.append(places, this.legend.place, this.tools());
    this.root.append(this.head, this.stage, this.foot, this.live);
    this.shownDevices = "";
    this.rove = [places, ...this.root.querySelectorAll("[role=toolbar]")].map(roving);
  }

  // Stands over the drawing while Python lays out a view for longer than a moment.
  layingNote() {
    const note = element("div", "laying");
    note.setAttribute("role", "status");
    note.hidden = true;
    note.append(
      element("span", "", "Laying out the graph"),
      button("Cancel", "Cancel and keep the drawing as it is (Esc)", () => this.canvas.cancelLayout()),
    );
    return note;
  }

  tools() {
    const { canvas } = this;
    const row = element("div", "tools");
    row.setAttribute("role", "toolbar");
    row.setAttribute("aria-label", "Canvas tools");
    this.undo = button("↶", "Undo the last change (Ctrl+Z)", () => canvas.send({ kind: "undo" }));
    this.redo = button("↷", "Redo (Ctrl+Y)", () => canvas.send({ kind: "redo" }));
    for (const tool of [this.undo, this.redo]) tool.classList.add("history");
    this.lasso = button("Lasso", "Draw a lasso with the next drag (or Alt-drag)", () =>
      canvas.setLasso(!canvas.lassoNext),
    );
    this.lasso.setAttribute("aria-pressed", "false");
    row.append(
      this.undo,
      this.redo,
      element("span", "gap"),
      button("Search", "Search ops by name, type or regular expression (/)", () =>
        canvas.finder.open(),
      ),
      this.lasso,
      button("Open all", "Open all blocks, as far as they can be drawn", () =>
        canvas.unfold("expand_all"),
      ),
      button("Close all", "Close all blocks", () => canvas.unfold("collapse_all")),
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
    let open = null;
    this.toggleGestures = () => {
      if (!panel.hidden) return this.closeGestures();
      panel.hidden = false;
      toggle.setAttribute("aria-expanded", "true");
      open = new AbortController();
      this.closeFromOutside(panel, toggle, open.signal);
    };
    const toggle = button("?", "What mouse and keys do here (?)", this.toggleGestures);
    toggle.setAttribute("aria-expanded", "false");
    toggle.setAttribute("aria-controls", panel.id);
    this.closeGestures = () => {
      open?.abort();
      panel.hidden = true;
      toggle.setAttribute("aria-expanded", "false");
    };
    return [panel, toggle];
  }

  // A press anywhere else on the page, and Escape wherever the focus is, close the list of gestures.
  closeFromOutside(panel, toggle, signal) {
    const on = (type, handler) => window.addEventListener(type, guarded(handler), { signal, capture: true });
    on("pointerdown", (event) => {
      const path = event.composedPath();
      if (!path.includes(panel) && !path.includes(toggle)) this.closeGestures();
    });
    on("keydown", (event) => {
      const { heldKey, menu } = this.canvas;
      if (event.key !== "Escape" || heldKey.isDown || menu.shown) return;
      this.closeGestures();
      event.preventDefault();
      event.stopImmediatePropagation();
    });
  }

  // Chips are kept while the devices stay the same, so that one can be clicked or dropped on
  // while numbers change.
  showDevices({ devices, counts, hatched }, { undo, redo }, readOnly) {
    const key = JSON.stringify([devices.map(({ name, label }) => [name, label]), readOnly]);
    if (key !== this.shownDevices) {
      this.shownDevices = key;
      this.chips.replaceChildren(...devices.map((device, i) => this.chip(device, i, readOnly)));
      this.tellRests();
    }
    [...this.chips.children].forEach((chip, i) => {
      // There may be a hundred of them, of which an edit changes two.
      const shown = JSON.stringify([devices[i], counts[i] ?? 0, hatched]);
      if (chip.shown === shown) return;
      chip.shown = shown;
      setText(chip.querySelector(".count"), opsText(counts[i] ?? 0));
      const { busy, memory } = devices[i];
      const facts = busy ? [element("span", "word", "busy "), [busy, memory].filter(Boolean).join(" · ")] : [];
      chip.querySelector(".facts").replaceChildren(...facts);
      chip.title = chipTitle(devices[i], i);
      paintSwatch(chip.firstChild, devices[i].colour, hatched ? devices[i].pattern : "");
    });
    this.showStep(this.undo, readOnly, undo, "Undo", "Ctrl+Z");
    this.showStep(this.redo, readOnly, redo, "Redo", "Ctrl+Y");
    for (const settle of this.rove) settle();
  }

  // How many devices and signs have no room.
  tellRests() {
    for (const rest of this.rests) rest.tell();
  }

  closeRests() {
    const open = this.rests.filter((rest) => rest.isOpen);
    for (const rest of open) rest.open(false);
    return open.length > 0;
  }

  showStep(tool, readOnly, step, verb, keys) {
    tool.disabled = readOnly || !step;
    const title = step ? `${verb} ${step} (${keys})` : `Nothing to ${verb.toLowerCase()}`;
    if (tool.title === title) return;
    tool.title = title;
    tool.setAttribute("aria-label", title);
  }

  chip(device, i, readOnly) {
    const chip = element("button", "chip");
    chip.type = "button";
    chip.dataset.device = String(i);
    chip.disabled = readOnly;
    const swatch = element("span", "swatch", i < 9 ? String(i + 1) : "");
    swatch.style.color = inkOn(device.colour);
    const texts = element("span", "texts");
    const first = element("span", "first");
    first.append(element("span", "name", device.label), element("span", "count"));
    texts.append(first, element("span", "facts"));
    chip.append(swatch, texts);
    foretelling(chip, this.canvas, i);
    chip.addEventListener("click", (event) => {
      event.stopPropagation();
      this.canvas.assignSelection(i);
      this.closeRests();
      this.root.focus({ preventScroll: true });
    });
    return chip;
  }

  // A notice stays readable although repaints come meanwhile.
  notice(text) {
    clearTimeout(this.noticeTimer);
    this.tell(text);
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
    if (this.status.textContent !== text) this.tell(text);
  }

  // The line is cut where it is longer than its place; the whole of it stands in its title.
  tell(text) {
    this.status.textContent = text;
    this.status.title = text;
  }

  say(text) {
    this.live.textContent = text;
  }

  showNote(text) {
    this.note.textContent = text;
    this.note.hidden = !text;
  }
}
