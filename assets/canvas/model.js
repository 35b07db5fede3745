// What is on the screen: a view, Python's last word on it, and our pending edits on top.

class Model {
  constructor() {
    this.view = null;
    this.nodes = [];
    this.index = new Map();
    this.boxes = [];
    this.boxIndex = new Map();
    this.devices = [];
    this.colours = [];
    this.mixes = new Map();
    this.counts = [];
    this.selected = [];
    this.marks = "";
    this.opacity = "";
    this.guessed = "";
    this.tones = null;
    this.hatched = false;
    this.crossings = null;
    this.path = "";
    this.queues = [];
    this.sums = {};
    this.pins = [];
    this.numChosen = null;
    // Nodes with an edit that Python has not answered yet: what was computed for them is of before.
    this.awaited = new Set();
  }

  setView(view) {
    this.view = view;
    this.nodes = view.nodes;
    // Where all ops are of one type, it is their names that tell them apart.
    this.isOneType = new Set(view.nodes.filter((node) => !node.closed).map((n) => n.label)).size <= 1;
    this.index = new Map(view.nodes.map((node, i) => [node.id, i]));
    this.boxes = view.boxes;
    this.boxIndex = new Map(view.boxes.map((box, i) => [box.id, i]));
    this.edges = buildEdges(view, this.index);
    this.inside = new Map(view.boxes.map((box) => [box.id, []]));
    view.nodes.forEach((node, i) => {
      let id = node.parent;
      while (this.boxIndex.has(id)) {
        this.inside.get(id).push(i);
        id = this.boxes[this.boxIndex.get(id)].parent;
      }
    });
  }

  // Python's state, then the edits it has not seen yet.
  apply(data, pending) {
    this.devices = data.devices;
    this.colours = [...data.colours];
    this.mixes = new Map(Object.entries(data.mixes).map(([i, mix]) => [Number(i), mix]));
    this.counts = data.counts.slice();
    this.selected = [...data.selected];
    this.marks = data.marks;
    this.opacity = data.opacity ?? "";
    this.guessed = data.guessed ?? "";
    this.tones = data.tones ?? null;
    this.hatched = Boolean(data.hatched);
    this.crossings = data.crossings || null;
    this.path = data.path ?? "";
    this.queues = buildQueues(data.queues ?? []);
    this.sums = data.sums ?? {};
    this.awaited.clear();
    this.pins = [...data.pins];
    this.numChosen = data.chosen;
    for (const entry of pending) {
      if (entry.kind === "select") this.select(entry.nodes, entry.how);
      else if (entry.kind === "assign") this.assign(entry.nodes ?? this.selection(), entry.device);
      else if (entry.kind === "pin" || entry.kind === "unpin") {
        this.pin(entry.nodes ?? this.selection(), entry.kind === "pin");
      }
    }
  }

  // "set" replaces the selection, "add" adds to it, "toggle" adds what is not all in it already.
  select(ids, how = "set") {
    this.numChosen = null;
    if (how === "set") this.selected = this.nodes.map(() => "0");
    for (const id of ids) {
      const i = this.index.get(id);
      if (i === undefined) continue;
      this.selected[i] = how === "toggle" && this.selected[i] === "2" ? "0" : "2";
    }
  }

  pin(ids, on) {
    for (const id of ids) {
      const i = this.index.get(id);
      if (i !== undefined) this.pins[i] = on ? "2" : "0";
    }
  }

  // Pinned nodes stay. Returned is how many ops change device; null where that is not known here, as of
  // a block with some ops pinned.
  assign(ids, device) {
    this.crossings = null;
    let moved = 0, isKnown = true;
    for (const id of ids) {
      const i = this.index.get(id);
      if (i === undefined || this.pins[i] === "2") continue;
      if (this.pins[i] === "1") isKnown = false;
      for (const [before, ops] of this.mixOf(i)) {
        if (before >= 0) this.counts[before] -= ops;
        if (before !== device) moved += ops;
      }
      this.counts[device] = (this.counts[device] ?? 0) + this.nodes[i].ops;
      this.colours[i] = codeOf(device);
      this.mixes.delete(i);
      this.awaited.add(i);
    }
    return isKnown ? moved : null;
  }

  // [[device, number of ops], ...] of a node.
  mixOf(i) {
    return this.mixes.get(i) ?? [[deviceAt(this.colours[i]), this.nodes[i].ops]];
  }

  mixOfBox(id) {
    const total = new Map();
    for (const i of this.inside.get(id) ?? []) {
      for (const [device, ops] of this.mixOf(i)) total.set(device, (total.get(device) ?? 0) + ops);
    }
    return [...total].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  }

  selection() {
    return this.nodes.filter((_, i) => this.selected[i] === "2").map((node) => node.id);
  }

  // Whether the selection holds ops that no node on the screen stands for alone.
  isPartlyHidden() {
    return this.selected.includes("1");
  }

  hasSelection() {
    return this.isPartlyHidden() || this.selected.includes("2");
  }

  numSelectedOps() {
    if (this.numChosen !== null) return this.numChosen;
    return this.nodes.reduce((sum, node, i) => sum + (this.selected[i] === "2" ? node.ops : 0), 0);
  }

  // What would go elsewhere, and how much of it would stay as far as it is known here.
  selectedText() {
    const isPinned = (_, i) => this.selected[i] === "2" && this.pins[i] === "2";
    const pinned = this.nodes.filter(isPinned).reduce((sum, node) => sum + node.ops, 0);
    return `${opsText(this.numSelectedOps())}${pinned ? `, ${pinned} pinned` : ""}`;
  }

  nodeAt(x, y) {
    for (let i = this.nodes.length - 1; i >= 0; i -= 1) {
      const node = this.nodes[i];
      if (Math.abs(x - node.x) <= node.w / 2 && Math.abs(y - node.y) <= node.h / 2) return i;
    }
    return -1;
  }

  // The innermost open box whose header is here; inner boxes come later in the list.
  headerAt(x, y) {
    for (let i = this.boxes.length - 1; i >= 0; i -= 1) {
      const box = this.boxes[i];
      if (x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + BOX_HEADER) return i;
    }
    return -1;
  }

  extent() {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    const take = (x, y, w, h) => {
      left = Math.min(left, x);
      top = Math.min(top, y);
      right = Math.max(right, x + w);
      bottom = Math.max(bottom, y + h);
    };
    for (const node of this.nodes) take(node.x - node.w / 2, node.y - node.h / 2, node.w, node.h);
    for (const box of this.boxes) take(box.x, box.y, box.w, box.h);
    for (const { bounds } of this.edges) take(bounds[0], bounds[1], bounds[2] - bounds[0], bounds[3] - bounds[1]);
    return this.nodes.length ? { left, top, right, bottom } : null;
  }
}
