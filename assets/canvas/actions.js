// What gestures and buttons do: change the screen at once, and tell Python.

Object.assign(Canvas.prototype, {
  send(entry) {
    if (this.readOnly && ["assign", "undo", "redo"].includes(entry.kind)) {
      this.chrome.notice("Read only: this placement cannot be changed here");
      return;
    }
    this.outbox.push(entry);
  },

  select(ids) {
    const { model } = this;
    const before = model.selected.join("");
    model.select(ids);
    if (model.selected.join("") === before) return;
    this.send({ kind: "select", nodes: ids });
    this.chrome.clearNotice();
    this.repaint();
    const ops = model.numSelectedOps();
    this.chrome.say(ids.length ? `${ops} ${ops === 1 ? "op" : "ops"} selected` : "Nothing selected");
    this.afterFrame(() => announce("selected", { key: this.data.key }));
  },

  selectAll() {
    this.select(this.model.nodes.map((node) => node.id));
  },

  selectBox(id, add = false) {
    const { model } = this;
    const ids = model.inside.get(id).map((i) => model.nodes[i].id);
    this.select(add ? [...new Set([...model.selection(), ...ids])] : ids);
  },

  assignSelection(device) {
    const { model } = this;
    const target = model.devices[device];
    const nodes = model.selection();
    if (!target) return;
    if (!nodes.length) {
      this.chrome.notice("Select something first, then choose a device");
      this.chrome.say("Nothing is selected");
      return;
    }
    if (this.readOnly) {
      this.send({ kind: "assign" });
      return;
    }
    model.assign(nodes, device);
    this.send({ kind: "assign", nodes, device });
    this.repaint();
    const ops = model.numSelectedOps();
    const text = `${ops} ${ops === 1 ? "op" : "ops"} on ${target.label}`;
    this.chrome.say(text);
    this.chrome.notice(text);
    this.afterFrame(() => announce("painted", { key: this.data.key }));
  },

  // The clicked block keeps its place on the screen when the new view arrives.
  toggle(id) {
    const { model } = this;
    const known = model.boxIndex.has(id) || model.nodes[model.index.get(id)]?.closed;
    if (!known) return;
    this.toggled = id;
    this.send({ kind: "toggle", node: id });
    this.chrome.root.setAttribute("aria-busy", "true");
  },

  closedGroupInSelection() {
    const { model } = this;
    return model.selection().find((id) => model.nodes[model.index.get(id)].closed);
  },

  boxAroundSelection() {
    const { model } = this;
    const first = model.selection()[0];
    const parent = first && model.nodes[model.index.get(first)].parent;
    return model.boxIndex.has(parent) ? parent : undefined;
  },

  toggleSelected(open) {
    const id = open ? this.closedGroupInSelection() : this.boxAroundSelection();
    if (id) this.toggle(id);
    else this.chrome.notice(open ? "Select a closed block first" : "Select something in a block");
  },

  openMenuAtSelection() {
    const { model } = this;
    const i = model.selected.indexOf("2");
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
    if (node >= 0) this.tooltip.show(nodeLines(model, node), x, y);
    else if (box >= 0) {
      const { id, title } = model.boxes[box];
      this.tooltip.show([...title.split("\n"), ...mixLines(model, model.mixOfBox(id))], x, y);
    } else if (edge) this.tooltip.show(edgeLines(model, edge), x, y);
    else this.tooltip.hide();
    if (changed && this.net) {
      this.bundles = bundleEdges(model, node);
      this.net.redraw();
    }
  },

  edgeAt(x, y) {
    const p = this.net.DOMtoCanvas({ x, y });
    const reach = 5 / this.scale;
    const ctx = this.overlay.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.lineWidth = 2 * reach;
    const near = (edge) => {
      const [left, top, right, bottom] = edge.bounds;
      return (
        !edge.tucked &&
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
