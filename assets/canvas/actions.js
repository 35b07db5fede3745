// What gestures and buttons do: change the screen at once, and tell Python.

const LAYING_MS = 500;
const EDITS = new Set(["assign", "undo", "redo", "pin", "unpin", "pin_order"]);

function opsText(number) {
  return `${number} ${number === 1 ? "op" : "ops"}`;
}

// A share in percent as it reads everywhere: 0%, 0.37%, 14.6%, 83%.
function percentText(share) {
  const digits = share >= 0.01 ? 1 : 2;
  return `${Number((100 * share).toFixed(digits))}%`;
}

Object.assign(Canvas.prototype, {
  send(entry) {
    if (this.readOnly && EDITS.has(entry.kind)) {
      const shown = `${this.data.shows || "Read only: this placement"} cannot be changed here`;
      this.chrome.notice(this.data.session ? shown : "The page is still opening; try again in a moment");
      return 0;
    }
    if (EDITS.has(entry.kind)) this.forgetMove();
    return this.outbox.push(entry);
  },

  // What was told of a move is not true any more after another edit, and of no interest after it.
  forgetMove() {
    this.move = null;
    this.chrome.clearNotice();
    this.chrome.showStatus(this.statusText());
  },

  select(ids, how = "set") {
    const { model } = this;
    const before = model.selected.join("");
    model.select(ids, how);
    if (model.selected.join("") === before) return;
    this.send({ kind: "select", nodes: ids, how });
    this.move = null;
    this.chrome.clearNotice();
    this.repaint();
    this.chrome.say(model.hasSelection() ? `${opsText(model.numSelectedOps())} selected` : "Nothing selected");
    this.afterFrame(() => announce("selected", { key: this.data.key }));
  },

  selectAll() {
    this.select(this.model.nodes.map((node) => node.id));
  },

  selectBox(id, add = false) {
    const { model } = this;
    const ids = model.inside.get(id).map((i) => model.nodes[i].id);
    this.select(ids, add ? "add" : "set");
  },

  // What an edit is for: the selection, or without one the node in the focus ring. Ops that are
  // selected inside closed blocks are known to Python alone: null stands for "what is selected".
  targets() {
    const { model } = this;
    if (model.hasSelection()) {
      return { nodes: model.isPartlyHidden() ? null : model.selection(), ops: model.numSelectedOps() };
    }
    const i = this.ringShown ? model.index.get(this.ring) : undefined;
    return i === undefined ? null : { nodes: [this.ring], ops: model.nodes[i].ops };
  },

  targetsOr(remedy) {
    const found = this.targets();
    if (!found) {
      this.chrome.notice(remedy);
      this.chrome.say("Nothing is selected");
    }
    return found;
  },

  assignSelection(device) {
    const { model } = this;
    const target = model.devices[device];
    this.forecast.end();
    if (!target) {
      const { length } = model.devices;
      this.tell(length === 1 ? "There is one device only" : `There is no device ${device + 1}: they are 1 to ${length}`);
      return;
    }
    const found = this.targetsOr("Select something first, then choose a device");
    const isAlone = !this.outbox.queue.some(({ kind }) => EDITS.has(kind));
    const n = found && this.send({ kind: "assign", nodes: found.nodes, device });
    if (!n) return;
    const moved = model.assign(found.nodes ?? model.selection(), device);
    this.repaint();
    this.move = { n: isAlone ? n : Infinity, device, before: this.data.counts[device] ?? 0 };
    // Of ops inside closed blocks nobody here knows where they are and which are pinned.
    if (found.nodes && moved !== null) this.tellMoved(moved);
    this.afterFrame(() => announce("painted", { key: this.data.key }));
  },

  tellMoved(number) {
    const { move } = this;
    if (move.told === number) return;
    move.told = number;
    this.tell(number ? `${opsText(number)} on ${this.model.devices[move.device].label}` : "Nothing moved");
  },

  // Python alone knows what moved along or had to stay: by how much its count of the device grew.
  moveConfirmed() {
    const { move, data } = this;
    if (!move || data.ack < move.n || !this.model.devices[move.device]) return;
    this.tellMoved(data.counts[move.device] - move.before);
    this.move = null;
  },

  // Pinned ops stay on their device, whatever a method or a drag wants.
  pinSelection(on) {
    const { model } = this;
    const found = this.targetsOr(`Select something first, then ${on ? "pin" : "unpin"} it`);
    if (!found || !this.send({ kind: on ? "pin" : "unpin", nodes: found.nodes })) return;
    model.pin(found.nodes ?? model.selection(), on);
    this.repaint();
    const where = `pinned where ${found.ops === 1 ? "it is" : "they are"}`;
    this.tell(`${opsText(found.ops)} ${on ? where : "free to move"}`);
  },

  // What runs on the devices of the selection keeps its order, whatever a method wants.
  pinOrder() {
    const found = this.targetsOr("Select something first, then pin the order on its device");
    if (found) this.send({ kind: "pin_order", nodes: found.nodes });
  },

  // All that leads to the selection, all that follows from it, or all that is built like it.
  widen(way) {
    const found = this.targetsOr("Select something first, then widen the selection");
    if (!found) return;
    if (!this.model.hasSelection()) this.select(found.nodes);
    this.send({ kind: "widen", way });
  },

  tell(text) {
    this.chrome.say(text);
    this.chrome.notice(text);
  },

  // The clicked block keeps its place on the screen when the new view arrives.
  toggle(id) {
    const { model } = this;
    const known = model.boxIndex.has(id) || model.nodes[model.index.get(id)]?.closed;
    if (!known) return;
    this.toggled = id;
    this.expectView(this.send({ kind: "toggle", node: id }));
  },

  unfold(kind) {
    this.toggled = null;
    this.expectView(this.send({ kind }));
  },

  // A view is under way; where it takes long, people see it and can have it stopped.
  expectView(n) {
    if (!n) return;
    this.expected = n;
    this.chrome.root.setAttribute("aria-busy", "true");
    clearTimeout(this.layingTimer);
    this.layingTimer = setTimeout(guarded(() => (this.chrome.laying.hidden = false)), LAYING_MS);
  },

  viewCame() {
    clearTimeout(this.layingTimer);
    this.chrome.laying.hidden = true;
    this.expected = 0;
  },

  cancelLayout() {
    home.cancel?.();
    this.toggled = null;
    this.viewCame();
    this.chrome.root.removeAttribute("aria-busy");
    this.tell("Cancelled: the drawing stays as it is");
  },

  // Keys act on the node in the focus ring while it is shown, else on the selection.
  atHand() {
    const { model } = this;
    return this.ringShown && model.index.has(this.ring) ? [this.ring] : model.selection();
  },

  closedGroupAtHand() {
    const { model } = this;
    return this.atHand().find((id) => model.nodes[model.index.get(id)].closed);
  },

  boxAtHand() {
    const { model } = this;
    const first = this.atHand()[0];
    const parent = first && model.nodes[model.index.get(first)].parent;
    return model.boxIndex.has(parent) ? parent : undefined;
  },

  // Enter opens a block and selects an op; Backspace closes the block around.
  enter() {
    const group = this.closedGroupAtHand();
    if (group) this.toggle(group);
    else if (this.ringShown) this.select([this.ring], "toggle");
    else this.chrome.notice("Select a closed block first");
  },

  leave() {
    const box = this.boxAtHand();
    if (box) this.toggle(box);
    else this.chrome.notice("Select something in a block");
  },

  openMenuAtSelection() {
    const { model } = this;
    const first = this.atHand()[0];
    const i = first === undefined ? model.selected.indexOf("1") : model.index.get(first);
    const { clientWidth, clientHeight } = this.chrome.stage;
    const at =
      i < 0 ? { x: clientWidth / 2, y: clientHeight / 3 } : this.net.canvasToDOM(model.nodes[i]);
    this.menu.open(at.x, at.y);
  },

  setLasso(on) {
    this.lassoNext = on;
    this.chrome.lasso.setAttribute("aria-pressed", String(on));
    this.chrome.stage.classList.toggle("lassoing", on);
  },

  setHover(node, box, edge, x, y) {
    const { model } = this;
    const changed = node !== this.hoveredNode || box !== this.hoveredBox;
    this.hoveredNode = node;
    this.hoveredBox = box;
    this.hoveredEdge = edge;
    if (x !== undefined) this.pointer = [x, y];
    this.showTooltip();
    if (changed && this.net) {
      this.bundles = bundleEdges(model, node);
      this.net.redraw();
    }
  },

  // What the pointer is on, in the words of now: an edit and its answer change them while it rests.
  showTooltip() {
    const { model, hoveredNode: node, hoveredBox: box, hoveredEdge: edge, pointer } = this;
    if (this.gestures.active?.moved || this.menu.shown) this.tooltip.hide();
    else if (node >= 0) this.tooltip.show(nodeLines(model, node), ...pointer);
    else if (box >= 0) {
      const { id, title } = model.boxes[box];
      this.tooltip.show([...title.split("\n"), ...mixLines(model, model.mixOfBox(id))], ...pointer);
    } else if (edge) this.tooltip.show(edgeLines(model, edge), ...pointer);
    else this.tooltip.hide();
  },

  edgeAt(x, y) {
    const p = this.net.DOMtoCanvas({ x, y });
    const reach = 5 / this.scale;
    const ctx = this.overlay.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.lineWidth = 2 * reach;
    const queue = this.model.queues.find((one) => ctx.isPointInStroke(one.path, p.x, p.y));
    if (queue) return queue;
    const near = (edge) => {
      const [left, top, right, bottom] = edge.bounds;
      return (
        !(edge.tucked && this.model.path[edge.number] !== "1") &&
        p.x > left - reach &&
        p.x < right + reach &&
        p.y > top - reach &&
        p.y < bottom + reach &&
        ctx.isPointInStroke(edge.path, p.x, p.y)
      );
    };
    return this.model.edges.find(near) ?? null;
  },
});
