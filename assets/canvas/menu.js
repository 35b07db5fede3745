// The menu on a right click or the menu key: devices first, then the block and the selection.

class Menu {
  constructor(canvas) {
    this.canvas = canvas;
    this.box = element("div", "menu");
    this.box.setAttribute("role", "menu");
    this.box.hidden = true;
    canvas.chrome.stage.append(this.box);
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("contextmenu", (event) => event.preventDefault());
    this.box.addEventListener("focusout", (event) => {
      if (!this.box.contains(event.relatedTarget)) this.close(false);
    });
  }

  open(x, y) {
    const { canvas } = this;
    const targets = canvas.targets();
    const entries = [
      ...(targets && !canvas.readOnly ? this.placing(targets) : []),
      ...(targets ? this.widening() : []),
      ...this.blocks(),
    ];
    if (targets) {
      entries.push(this.entry("Zoom to the selection", () => canvas.lookAtSelection(true)));
      entries.push(this.entry("Clear selection", () => canvas.select([]), { hint: "Esc" }));
    } else entries.push(this.entry("Select everything", () => canvas.selectAll(), { hint: "Ctrl+A" }));
    entries.push(this.entry("Show everything", () => canvas.fit(true), { hint: "F" }));
    this.box.replaceChildren(...entries);
    this.box.hidden = false;
    const { clientWidth, clientHeight } = canvas.chrome.stage;
    this.box.style.maxHeight = `${clientHeight - 12}px`;
    this.box.style.left = `${Math.max(4, Math.min(x, clientWidth - this.box.offsetWidth - 6))}px`;
    this.box.style.top = `${Math.max(4, Math.min(y, clientHeight - this.box.offsetHeight - 6))}px`;
    canvas.tooltip.hide();
    this.items()[0]?.focus();
  }

  placing({ ops }) {
    const { canvas } = this;
    const devices = canvas.model.devices.map((device, i) =>
      this.entry(device.label, () => canvas.assignSelection(i), {
        colour: device.colour,
        hint: i < 9 ? String(i + 1) : "",
        device: i,
      }),
    );
    return [
      element("div", "caption", `Put ${opsText(ops)} on`),
      ...devices,
      element("hr"),
      this.entry("Pin where it is", () => canvas.pinSelection(true), { hint: "P" }),
      this.entry("Unpin", () => canvas.pinSelection(false), { hint: "Del" }),
      this.entry("Pin the order on its device", () => canvas.pinOrder(), { hint: "O" }),
      element("hr"),
    ];
  }

  widening() {
    const { canvas } = this;
    return [
      this.entry("Select all before it", () => canvas.widen("upstream"), { hint: "Shift+↑" }),
      this.entry("Select all after it", () => canvas.widen("downstream"), { hint: "Shift+↓" }),
      this.entry("Select all alike", () => canvas.widen("alike"), { hint: "A" }),
      element("hr"),
    ];
  }

  blocks() {
    const { canvas } = this;
    const { model } = canvas;
    const group = canvas.closedGroupAtHand();
    const around = canvas.boxAtHand();
    const entries = [];
    if (group) entries.push(this.entry("Open block", () => canvas.toggle(group), { hint: "Enter" }));
    if (around) {
      const { label } = model.boxes[model.boxIndex.get(around)];
      entries.push(this.entry(`Close ${label}`, () => canvas.toggle(around), { hint: "⌫" }));
      entries.push(this.entry(`Select all of ${label}`, () => canvas.selectBox(around)));
    }
    return entries;
  }

  entry(text, action, { colour, hint, device } = {}) {
    const made = element("button", "entry");
    made.type = "button";
    made.setAttribute("role", "menuitem");
    made.tabIndex = -1;
    if (colour) {
      const dot = element("span", "dot");
      dot.style.background = colour;
      made.append(dot);
    }
    made.append(element("span", "text", text));
    if (hint) made.append(element("kbd", "", hint));
    if (device !== undefined) foretelling(made, this.canvas, device);
    made.addEventListener("click", (event) => {
      event.stopPropagation();
      this.close(true);
      action();
    });
    return made;
  }

  items() {
    return [...this.box.querySelectorAll(".entry")];
  }

  key(event) {
    const items = this.items();
    const root = this.canvas.chrome.root.getRootNode();
    const at = items.indexOf(root.activeElement);
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    event.stopPropagation();
    if (event.key === "ArrowDown") items[(at + 1) % items.length]?.focus();
    else if (event.key === "ArrowUp") items[(at - 1 + items.length) % items.length]?.focus();
    else if (event.key === "Home") items[0]?.focus();
    else if (event.key === "End") items[items.length - 1]?.focus();
    else if (event.key === "Escape" || event.key === "Tab") this.close(true);
    else if (digit >= 0) {
      this.close(true);
      this.canvas.assignSelection(digit);
    } else if (event.key !== "Enter" && event.key !== " ") return;
    else items[at]?.click();
    event.preventDefault();
  }

  get shown() {
    return !this.box.hidden;
  }

  close(refocus) {
    if (this.box.hidden) return;
    this.box.hidden = true;
    this.canvas.forecast.end();
    if (refocus) this.canvas.chrome.root.focus({ preventScroll: true });
  }
}
