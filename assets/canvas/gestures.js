// The pointer: click, ctrl-click, box, lasso, drag onto a chip, double click, right click.
//
// We listen in the capture phase. What starts on a node, a header or as a region is ours; what
// starts on empty ground goes on to vis-network, which pans.

const CLICK_REACH = 5;
// Parts of the stage that are not the drawing.
const FURNITURE = ".menu, .zoom, .gestures, .note, .find, .minimap, .laying";

class Gestures {
  constructor(canvas) {
    this.canvas = canvas;
    this.active = null;
    this.ghost = null;
    const { stage, root } = canvas.chrome;
    const on = (target, type, handler, options) =>
      target.addEventListener(type, guarded((e) => handler.call(this, e)), options);
    on(stage, "pointerdown", this.down, { capture: true });
    on(stage, "pointermove", this.hover);
    on(stage, "pointerleave", () => canvas.setHover(-1, -1, null));
    on(stage, "dblclick", this.doubleClick, { capture: true });
    on(stage, "contextmenu", this.contextMenu);
    on(stage, "wheel", (event) => event.preventDefault(), { passive: false });
    for (const type of ["dragover", "drop"]) on(root, type, (event) => event.preventDefault());
  }

  point(event) {
    const frame = this.canvas.chrome.stage.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }

  hit(x, y) {
    const { canvas } = this;
    const { model, net } = canvas;
    const p = net.DOMtoCanvas({ x, y });
    const node = model.nodeAt(p.x, p.y);
    if (node >= 0) {
      const { closed, x: cx, y: cy, w, h } = model.nodes[node];
      const onFold =
        closed && Math.abs(p.x - (cx + w / 2 - 15)) < 10 && Math.abs(p.y - (cy - h / 2 + 15)) < 10;
      return { node, box: -1, onFold };
    }
    const box = model.headerAt(p.x, p.y);
    const onFold = box >= 0 && Math.abs(p.x - (headerLeft(model.boxes[box], canvas.seen) + 15)) < 11;
    return { node: -1, box, onFold };
  }

  down(event) {
    const { canvas } = this;
    if (!canvas.net || event.target.closest?.(FURNITURE)) return;
    canvas.menu.close(false);
    canvas.chrome.closeRests();
    canvas.chrome.root.focus({ preventScroll: true });
    canvas.ringShown = false;
    if (event.button !== 0) return;
    const [x, y] = this.point(event);
    const found = this.hit(x, y);
    const lasso = event.altKey || canvas.lassoNext;
    const region = event.shiftKey || lasso ? new Region(canvas, x, y, lasso) : null;
    const ours = region || found.node >= 0 || found.box >= 0;
    this.active = { x, y, found, region, moved: false, dragging: false, id: event.pointerId };
    this.listen();
    if (ours) {
      event.stopPropagation();
      // Without this the browser moves the focus out of the shadow root.
      event.preventDefault();
    }
  }

  // Listeners on the window follow the pointer out of the canvas, also onto a chip.
  listen() {
    const end = new AbortController();
    const on = (type, handler) =>
      window.addEventListener(type, guarded((e) => handler.call(this, e)), {
        signal: end.signal,
        capture: true,
      });
    this.active.end = end;
    on("pointermove", this.move);
    on("pointerup", this.up);
    on("pointercancel", this.cancel);
  }

  move(event) {
    const { active, canvas } = this;
    if (!active || event.pointerId !== active.id) return;
    const [x, y] = this.point(event);
    if (!active.moved && Math.hypot(x - active.x, y - active.y) < CLICK_REACH) return;
    active.moved = true;
    canvas.tooltip.hide();
    if (active.region) active.region.extend(x, y);
    else if ((active.found.node >= 0 || active.found.box >= 0) && !canvas.readOnly) this.drag(event);
  }

  drag(event) {
    const { active, canvas } = this;
    const { model, chrome } = canvas;
    if (!active.dragging) {
      active.dragging = true;
      this.takeAlong(active.found);
      this.ghost = element("div", "ghost", model.selectedText());
      chrome.root.append(this.ghost);
      chrome.root.classList.add("dragging");
      // Whatever has no room in the row of devices can be dropped on, too.
      chrome.rests[0].open(true);
    }
    const frame = chrome.root.getBoundingClientRect(), chip = this.chipAt(event);
    // What is held over a device covers none of its figures: its words stand below, where the
    // forecast comes.
    const tile = chip?.getBoundingClientRect();
    this.ghost.style.left = `${(tile ? tile.left : event.clientX + 12) - frame.left}px`;
    this.ghost.style.top = `${(tile ? tile.bottom + 6 : event.clientY + 8) - frame.top}px`;
    if (chip) canvas.forecast.ask(Number(chip.dataset.device));
    else canvas.forecast.end();
  }

  // What is dragged: the whole selection if that was taken hold of, else the op or the block alone.
  takeAlong({ node, box }) {
    const { canvas } = this;
    const { model } = canvas;
    if (node >= 0) {
      if (model.selected[node] === "0") canvas.select([model.nodes[node].id]);
      return;
    }
    const { id } = model.boxes[box];
    if (!model.inside.get(id).every((i) => model.selected[i] === "2")) canvas.selectBox(id);
  }

  chipAt(event) {
    const root = this.canvas.chrome.root.getRootNode();
    return root.elementFromPoint(event.clientX, event.clientY)?.closest?.(".chip") ?? null;
  }

  up(event) {
    const { active, canvas } = this;
    if (!active || event.pointerId !== active.id) return;
    const add = event.ctrlKey || event.metaKey;
    if (active.region && active.moved) {
      const [x, y] = this.point(event);
      active.region.extend(x, y);
      const ids = active.region.nodes();
      canvas.select(ids, add ? "add" : "set");
    } else if (active.dragging) {
      const chip = this.chipAt(event);
      if (chip) canvas.assignSelection(Number(chip.dataset.device));
    } else if (!active.moved) {
      this.click(active.found, add || event.shiftKey);
    }
    this.finish();
  }

  click({ node, box, onFold }, add) {
    const { canvas } = this;
    const { model } = canvas;
    if (onFold) {
      canvas.toggle(node >= 0 ? model.nodes[node].id : model.boxes[box].id);
    } else if (node >= 0) {
      const { id } = model.nodes[node];
      canvas.ring = id;
      canvas.select([id], add ? "toggle" : "set");
    } else if (box >= 0) {
      canvas.selectBox(model.boxes[box].id, add);
    } else if (!add) {
      canvas.select([]);
    }
  }

  cancel() {
    this.finish();
  }

  finish() {
    const { active, canvas } = this;
    if (!active) return;
    active.end.abort();
    active.region?.clear();
    if (active.region?.lasso) canvas.setLasso(false);
    this.ghost?.remove();
    this.ghost = null;
    canvas.chrome.root.classList.remove("dragging");
    if (active.dragging) {
      canvas.forecast.end();
      canvas.chrome.closeRests();
    }
    this.active = null;
    // Wherever the pointer has come to, it is not where it took hold.
    if (active.moved) canvas.setHover(-1, -1, null);
  }

  doubleClick(event) {
    const { canvas } = this;
    if (!canvas.net || event.target.closest?.(FURNITURE)) return;
    event.stopPropagation();
    const { node, box, onFold } = this.hit(...this.point(event));
    if (onFold) return;
    const { model } = canvas;
    if (node >= 0 && model.nodes[node].closed) canvas.toggle(model.nodes[node].id);
    else if (node >= 0) canvas.toggle(model.nodes[node].parent);
    else if (box >= 0) canvas.toggle(model.boxes[box].id);
  }

  contextMenu(event) {
    const { canvas } = this;
    event.preventDefault();
    event.stopPropagation();
    if (!canvas.net || event.target.closest?.(FURNITURE)) return;
    const [x, y] = this.point(event);
    const { node, box } = this.hit(x, y);
    const { model } = canvas;
    if (node >= 0 && model.selected[node] === "0") canvas.select([model.nodes[node].id]);
    else if (node < 0 && box >= 0) canvas.selectBox(model.boxes[box].id);
    canvas.menu.open(x, y);
  }

  hover(event) {
    const { canvas } = this;
    if (!canvas.net || this.active || canvas.menu.shown) return;
    if (event.target.closest?.(FURNITURE)) {
      canvas.setHover(-1, -1, null);
      return;
    }
    const at = this.point(event);
    if (this.waiting) {
      this.waiting = at;
      return;
    }
    this.waiting = at;
    requestAnimationFrame(
      guarded(() => {
        const [x, y] = this.waiting;
        this.waiting = null;
        if (!canvas.net || this.active) return;
        this.pointAt(x, y);
      }),
    );
  }

  pointAt(x, y) {
    const { canvas } = this;
    const { node, box, onFold } = this.hit(x, y);
    const edge = node < 0 && box < 0 ? canvas.edgeAt(x, y) : null;
    canvas.chrome.stage.style.cursor =
      node >= 0 || onFold ? "pointer" : box >= 0 ? "default" : "grab";
    canvas.setHover(node, box, edge, x, y);
  }

  // Something else may be drawn now under a pointer that rests.
  pointAgain() {
    const { canvas } = this;
    const pointing = canvas.hoveredNode >= 0 || canvas.hoveredBox >= 0 || canvas.hoveredEdge;
    if (pointing && canvas.net && !this.active) this.pointAt(...canvas.pointer);
  }
}
