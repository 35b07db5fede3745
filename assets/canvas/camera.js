// Where the canvas looks: first sight, fit, zoom, and staying put when blocks open or close.

// Few cards do not fill a large place: at a desk they are drawn as large as this at the most.
const LARGEST = 1.1;

Object.assign(Canvas.prototype, {
  resized() {
    const { clientWidth: width, clientHeight: height } = this.chrome.stage;
    if (!width || !height) return;
    if (!this.net) {
      this.refresh();
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    this.overlay.width = Math.round(width * ratio);
    this.overlay.height = Math.round(height * ratio);
    // vis-network rescales with its container and ends its animation; we keep the scale and the
    // upper left corner as they were, but the whole drawing in sight as long as nobody has done
    // anything, and in a window of another size, or beside a method's step, where nobody has looked at
    // a part of it since.
    const scale = this.net.getScale();
    const corner = this.net.DOMtoCanvas({ x: 0, y: 0 });
    this.net.setSize(`${width}px`, `${height}px`);
    const position = { x: corner.x + width / 2 / scale, y: corner.y + height / 2 / scale };
    this.noticeSidebar();
    const isOtherWindow = performance.now() - this.windowResizedAt < SETTLING_MS;
    const still = this.firstSight || (this.isWhole && (isOtherWindow || this.isStepNew)) ? this.cameraFor() : { scale, position };
    this.net.moveTo({ ...(this.aim ?? still), animation: false });
    this.aim = null;
    this.lookIfAsked(true);
    this.net.redraw();
  },

  // Folding the sidebar gives the page another width, as a window of another size does.
  noticeSidebar() {
    const sidebar = document.querySelector('[data-testid="stSidebar"]');
    const edge = sidebar ? Math.round(sidebar.getBoundingClientRect().right) : 0;
    if (this.sidebarEdge !== undefined && edge !== this.sidebarEdge) this.windowResizedAt = performance.now();
    this.sidebarEdge = edge;
  },

  // Where the whole drawing is in sight, clear of the zoom buttons.
  cameraFor() {
    const extent = this.model.extent();
    if (!extent) return { scale: 1, position: { x: 0, y: 0 } };
    const { clientWidth, clientHeight } = this.chrome.stage;
    // An audience's picture may have a low place, where every line counts.
    const margin = this.data.enlarged > 1 ? Math.min(28, clientHeight / 14) : 28;
    // The zoom buttons stand at the right, and where the drawing fills its place the legend below.
    const rail = 44 * this.data.enlarged;
    const hasFoot = !this.data.height && getComputedStyle(this.chrome.legend.row).display !== "none";
    const foot = hasFoot ? Math.max(18 * this.data.enlarged, this.covered() - margin) : 0;
    const width = extent.right - extent.left;
    const height = extent.bottom - extent.top;
    const whole = Math.min(
      LARGEST * this.data.enlarged,
      (clientWidth - 2 * margin - rail) / width,
      (clientHeight - 2 * margin - foot) / height,
    );
    const scale = Math.max(whole, 0.01);
    // From the top, for the lower part of the stage may be below the edge of the screen.
    const position = {
      x: (extent.left + extent.right) / 2 + rail / 2 / scale,
      y: extent.top + (clientHeight / 2 - margin) / scale,
    };
    return { scale, position };
  },

  // How much of the stage's foot the legend covers, which may have several lines.
  covered() {
    const legend = this.chrome.legend.row.getBoundingClientRect();
    return legend.height ? this.chrome.stage.getBoundingClientRect().bottom - legend.top + 4 : 0;
  },

  // Whoever wants to see everything wants that in a window of another size, too.
  fit(animated) {
    if (!this.net || !this.chrome.stage.clientHeight) return;
    const presented = this.data.enlarged > 1;
    this.travel(this.cameraFor(), animated, () => (presented ? this.lookAtStart() : this.saveCamera(true)));
  },

  // An animation of vis-network ends near its aim, not on it.
  travel(camera, animated, arrived = () => this.saveCamera()) {
    const arrive = guarded(() => {
      if (!this.net || (animated && this.aim !== camera)) return;
      this.net.moveTo({ ...camera, animation: false });
      this.aim = null;
      arrived();
    });
    if (!animated) {
      arrive();
      return;
    }
    this.aim = camera;
    this.net.once("animationFinished", arrive);
    this.net.moveTo({ ...camera, animation: { duration: 220, easingFunction: "easeInOutQuad" } });
  },

  zoom(factor) {
    if (!this.net) return;
    const scale = Math.min(4, Math.max(0.01, this.net.getScale() * factor));
    this.net.moveTo({ scale, animation: false });
    this.saveCamera();
  },

  // The first sight is nobody's choice, so nothing remembers it: it is found anew for every size.
  lookAtStart() {
    this.net.moveTo({ ...this.cameraFor(), animation: false });
    this.aim = null;
    this.firstSight = this.isWhole = true;
    home.saved.delete(this.place());
  },

  // Each page has a stage of its own size, and so a camera of its own.
  place() {
    return `${location.pathname} ${this.data.key}`;
  },

  // `isWhole`: what is looked at is all of the drawing.
  saveCamera(isWhole = false) {
    this.firstSight = false;
    this.isWhole = isWhole;
    this.aim = null;
    if (!this.net || !this.data || !this.chrome.stage.clientWidth) return;
    home.saved.set(this.place(), {
      graph: this.model.view.graph,
      view: this.model.view.hash,
      scale: this.net.getScale(),
      position: this.net.getViewPosition(),
      isWhole,
    });
  },

  // A point of the old drawing that should stay where it is on the screen.
  anchorBefore() {
    const { model } = this;
    const spots = anchors(model);
    const ids = [this.toggled, ...model.selection()].filter((id) => id && spots.has(id));
    return { ids, all: spots, scale: this.net.getScale() };
  },

  placeCamera(before, sameGraph) {
    const saved = home.saved.get(this.place());
    if (before && sameGraph && this.toggled) {
      const spots = anchors(this.model);
      const near = this.net.getViewPosition();
      const kept = [...before.ids, ...nearestFirst(before.all, near)].find((id) => spots.has(id));
      if (kept) {
        const [old, now] = [before.all.get(kept), spots.get(kept)];
        this.net.moveTo({
          scale: before.scale,
          position: { x: near.x + now.x - old.x, y: near.y + now.y - old.y },
          animation: false,
        });
        this.showBox(this.toggled);
        this.saveCamera();
        return;
      }
    }
    if (!before && saved?.view === this.model.view.hash) {
      this.net.moveTo({ scale: saved.scale, position: saved.position, animation: false });
      this.saveCamera(saved.isWhole);
      return;
    }
    this.lookAtStart();
  },

  // An opened block that sticks out is moved in, and the view widened where it is too large.
  showBox(id) {
    const box = this.model.boxes[this.model.boxIndex.get(id)];
    if (!box) return;
    const { clientWidth, clientHeight } = this.chrome.stage;
    const [width, height] = [clientWidth - 80, clientHeight - 32];
    const now = this.net.getScale();
    const scale = Math.max(READABLE, Math.min(now, width / box.w, height / box.h));
    const middle = this.net.getViewPosition();
    const place = (start, length, centre, room) => {
      const half = room / 2 / scale;
      if (length > 2 * half) return start + half;
      return Math.min(Math.max(centre, start + length - half), start + half);
    };
    const position = {
      x: place(box.x, box.w, middle.x, width) + 16 / scale,
      y: place(box.y, box.h, middle.y, height),
    };
    const sticksOut =
      scale < now ||
      Math.abs(position.x - 16 / scale - middle.x) > 1 ||
      Math.abs(position.y - middle.y) > 1;
    if (sticksOut) this.net.moveTo({ scale, position, animation: false });
  },

  // Timeline, table and search ask by a growing number; each number is granted once.
  lookIfAsked(isNew) {
    const { session, focus } = this.data;
    if (focus <= (home.looked.get(session) ?? 0)) return;
    // Where the dock stands alone there is no place for it yet.
    if (!this.chrome.stage.clientHeight) return;
    home.looked.set(session, focus);
    this.lookAtSelection(!isNew);
  },

  // Moves to what is selected, and away from it only as far as it needs to be seen whole.
  lookAtSelection(animated) {
    const { model } = this;
    const chosen = model.nodes.filter((_, i) => model.selected[i] > "0");
    if (!chosen.length || !this.net) return;
    const left = Math.min(...chosen.map((n) => n.x - n.w / 2));
    const right = Math.max(...chosen.map((n) => n.x + n.w / 2));
    const top = Math.min(...chosen.map((n) => n.y - n.h / 2));
    const bottom = Math.max(...chosen.map((n) => n.y + n.h / 2));
    const { clientWidth, clientHeight } = this.chrome.stage;
    const whole = Math.min(
      Math.max(clientWidth - 120, clientWidth / 2) / (right - left),
      Math.max(clientHeight - 100, clientHeight / 2) / (bottom - top),
    );
    const now = this.net.getScale();
    // An audience would lose its way: what it sees already stays, and nothing is enlarged.
    const presented = this.data.enlarged > 1;
    // Arrow keys begin at what is looked at.
    if (presented) this.ringShown = false;
    if (presented && this.shows(left, top, right, bottom)) {
      announce("looked", { key: this.data.key });
      return;
    }
    const scale = Math.max(0.01, Math.min(whole, presented ? now : Math.max(now, 0.8)));
    const position = { x: (left + right) / 2, y: (top + bottom) / 2 };
    // A step of a presentation is nobody's hand: a window of another size still shows everything.
    this.travel({ scale, position }, animated, presented && this.firstSight ? () => {} : undefined);
    announce("looked", { key: this.data.key });
  },

  // Whether all of a part of the drawing is in sight.
  shows(left, top, right, bottom) {
    const [from, to] = [this.net.canvasToDOM({ x: left, y: top }), this.net.canvasToDOM({ x: right, y: bottom })];
    const { clientWidth, clientHeight } = this.chrome.stage;
    return from.x >= 0 && from.y >= 0 && to.x <= clientWidth && to.y <= clientHeight;
  },

  bringIntoView(i) {
    const node = this.model.nodes[i];
    const p = this.net.canvasToDOM(node);
    const { clientWidth, clientHeight } = this.chrome.stage;
    if (p.x < 40 || p.y < 30 || p.x > clientWidth - 40 || p.y > clientHeight - 30) {
      this.net.moveTo({ position: { x: node.x, y: node.y }, animation: { duration: 160 } });
      this.firstSight = this.isWhole = false;
      this.aim = null;
    }
  },
});

// Top middle of every node and box; a block has the same id closed and open.
function anchors(model) {
  const spots = new Map();
  for (const box of model.boxes) spots.set(box.id, { x: box.x + box.w / 2, y: box.y });
  for (const node of model.nodes) spots.set(node.id, { x: node.x, y: node.y - node.h / 2 });
  return spots;
}

function nearestFirst(spots, { x, y }) {
  const far = ([, p]) => Math.hypot(p.x - x, p.y - y);
  return [...spots].sort((a, b) => far(a) - far(b)).map(([id]) => id);
}
