// One canvas on a page: ties view, state, drawing and gestures together.

const home = (globalThis.__placementCanvas ??= {});
home.views ??= new Map();
home.waiters ??= new Set();
home.saved ??= new Map();
// Number of the last wish to look at the selection that was granted, by session.
home.looked ??= new Map();
home.alive = new Set();

// Streamlit replaces a component that throws with an error box; ours goes on and says so instead.
function guarded(action) {
  return (...args) => {
    try {
      return action(...args);
    } catch (error) {
      console.warn("graph canvas:", error);
      home.lastError = String(error?.stack ?? error);
      return undefined;
    }
  };
}

function announce(what, detail) {
  performance.mark(`placement-canvas-${what}`);
  window.dispatchEvent(
    new CustomEvent("placement-canvas", { detail: { what, at: performance.now(), ...detail } }),
  );
}

const READABLE = 0.4;
// How long after the window's size that of a part of the page still follows it.
const SETTLING_MS = 500;
const BEGINNINGS = ["pointerdown", "keydown", "wheel"];

class Canvas {
  constructor(parent) {
    this.parent = parent;
    this.generation = 0;
    this.model = new Model();
    this.outbox = new Outbox();
    this.chrome = new Chrome(this);
    this.tooltip = new Tooltip(this.chrome.stage);
    this.menu = new Menu(this);
    this.gestures = new Gestures(this);
    this.heldKey = new HeldKey(
      (device) => this.forecast.ask(device),
      guarded((device) => this.assignSelection(device)),
    );
    this.finder = new Finder(this);
    this.minimap = new Minimap(this);
    this.overlay = this.chrome.overlay;
    this.hoveredNode = -1;
    this.hoveredBox = -1;
    this.hoveredEdge = null;
    this.pointer = [0, 0];
    this.lassoNext = false;
    this.ring = null;
    this.ringShown = false;
    this.expected = 0;
    this.scale = 1;
    this.seen = { left: 0, top: 0 };
    this.bundles = [];
    this.net = null;
    this.data = null;
    this.confirmed = 0;
    this.move = null;
    this.forecast = new Forecast(this);
    parent.append(this.chrome.root);
    this.theme = readTheme(this.chrome.root);
    this.chrome.root.addEventListener("keydown", guarded((event) => handleKey(this, event)));
    this.pageKey = guarded((event) => handlePageKey(this, event));
    window.addEventListener("keydown", this.pageKey);
    this.wake = guarded(() => this.refresh());
    home.waiters.add(this.wake);
    this.windowResizedAt = -Infinity;
    this.windowResized = () => (this.windowResizedAt = performance.now());
    window.addEventListener("resize", this.windowResized);
    this.sizes = new ResizeObserver(guarded(() => this.resized()));
    this.sizes.observe(this.chrome.stage);
    // Whoever has begun to do something here keeps the picture where it is, whatever is resized.
    // In a presentation only who pans or zooms has: keys and buttons lead from step to step there.
    this.begun = () => {
      this.isStepNew = false;
      if (!(this.data?.enlarged > 1)) this.firstSight = false;
    };
    for (const what of BEGINNINGS) window.addEventListener(what, this.begun, true);
  }

  update(args) {
    const { data } = args;
    if (!data) return;
    // The dock is higher beside a method's step, so that the picture has another place as long as one
    // is shown.
    const isOtherPlace = this.data && Boolean(this.data.shows) !== Boolean(data.shows);
    this.isStepNew ||= isOtherPlace;
    this.data = data;
    this.readOnly = data.readOnly;
    if (data.asks) consequences.about(data.asks, data.session);
    this.outbox.send = (value) => args.setStateValue("ops", value);
    this.outbox.acknowledge(data.session, data.ack);
    // Whoever begins or ends a presentation wants to see all of the graph in the room there is then.
    if ((this.theme.enlarged ?? data.enlarged) !== data.enlarged) this.firstSight = this.isWhole = true;
    this.theme = { ...readTheme(this.chrome.root), enlarged: data.enlarged };
    this.chrome.root.style.height = data.height ? `${data.height}px` : "100%";
    this.chrome.root.classList.toggle("fill", !data.height);
    this.chrome.root.classList.toggle("dark", this.theme.dark);
    this.chrome.root.classList.toggle("presented", data.enlarged > 1);
    home.alive.add(this);
    this.refresh();
    if (isOtherPlace && this.net) this.resized();
  }

  // Draws what is known now: called for new data, a view that arrives later, a first size.
  refresh() {
    const { data, model } = this;
    if (!data) return;
    const view = home.views.get(data.view);
    if (!view) {
      // The store's message is still on its way.
      this.chrome.root.setAttribute("aria-busy", "true");
      return;
    }
    if (!this.chrome.stage.clientWidth) return;
    this.chrome.root.removeAttribute("aria-busy");
    const isNew = model.view?.hash !== view.hash;
    const before = isNew && this.net ? this.anchorBefore() : null;
    const sameGraph = model.view?.graph === view.graph;
    if (isNew) model.setView(view);
    model.apply(data, this.outbox.queue);
    this.moveConfirmed();
    if (!this.net) this.createNetwork();
    else if (isNew) this.swapNodes();
    if (isNew) this.placeCamera(before, sameGraph);
    if (isNew || data.ack >= this.expected) this.viewCame();
    if (isNew) this.ringAfterView();
    this.gestures.pointAgain();
    this.lookIfAsked(isNew);
    this.finder.show(data.search);
    this.chrome.showNote(model.nodes.length ? "" : data.empty || "This graph has no ops.");
    this.repaint();
    if (data.ack > this.confirmed) {
      this.confirmed = data.ack;
      this.afterFrame(() => announce("confirmed", { key: data.key, ack: data.ack }));
    }
    if (isNew) {
      this.toggled = null;
      this.afterFrame(() => {
        this.drawn = view.hash;
        announce("drawn", { key: data.key, view: view.hash, nodes: model.nodes.length });
      });
    }
  }

  afterFrame(action) {
    requestAnimationFrame(() => requestAnimationFrame(guarded(action)));
  }

  visNodes() {
    return this.model.nodes.map((node, i) => ({
      id: node.id,
      x: node.x,
      y: node.y,
      fixed: true,
      shape: "custom",
      ctxRenderer: ({ ctx }) => ({
        drawNode: guarded(() => {
          drawStack(ctx, this, i);
          drawNode(ctx, this, i);
          drawMarks(ctx, this, i);
        }),
        nodeDimensions: { width: node.w, height: node.h },
      }),
    }));
  }

  createNetwork() {
    this.dataset = new vis.DataSet(this.visNodes());
    const options = { ...this.model.view.options, autoResize: false };
    const none = new vis.DataSet([]);
    this.net = new vis.Network(this.chrome.drawing, { nodes: this.dataset, edges: none }, options);
    // vis-network makes its own tab stop inside ours.
    this.net.canvas.frame.tabIndex = -1;
    this.net.on("beforeDrawing", guarded((ctx) => this.drawBeneath(ctx)));
    this.net.on("afterDrawing", guarded(() => this.minimap.draw()));
    this.net.on("zoom", guarded(() => this.saveCamera()));
    this.net.on("dragEnd", guarded(() => this.saveCamera()));
    this.resized();
  }

  swapNodes() {
    this.dataset.clear();
    this.dataset.add(this.visNodes());
  }

  drawBeneath(ctx) {
    this.scale = this.net.getScale();
    const corner = this.net.DOMtoCanvas({ x: 4, y: 4 });
    this.seen = { left: corner.x, top: corner.y };
    drawFrames(ctx, this.model, this.theme);
    drawEdges(ctx, this.bundles, this.theme, this.scale);
    drawQueues(ctx, this);
    drawHeaders(ctx, this);
  }

  // Colours, selection or hover changed: no vis data is touched, the next frame shows it.
  repaint() {
    const { model, chrome } = this;
    this.bundles = bundleEdges(model, this.hoveredNode);
    chrome.showDevices(model, this.data, this.readOnly);
    chrome.legend.show(this);
    chrome.showStatus(this.statusText());
    this.net?.redraw();
    this.showTooltip();
  }

  statusText() {
    const { model } = this;
    if (this.data.shows) return this.data.shows;
    const chosen = model.selection();
    const ops = model.numSelectedOps();
    if (chosen.length === 1 && !model.isPartlyHidden()) {
      const node = model.nodes[model.index.get(chosen[0])];
      return `Selected: ${node.label}, ${node.closed ? opsText(node.ops) : node.sub}`;
    }
    if (model.hasSelection()) return `Selected: ${opsText(ops)}`;
    const refused = model.view?.refused ?? 0;
    if (refused) return `${refused} ${refused === 1 ? "block stays" : "blocks stay"} closed: too many nodes to draw at once`;
    // Whether it is more than read, a session says.
    return this.readOnly && this.data.session ? "Read only" : "Nothing selected";
  }

  destroy() {
    this.outbox.close();
    this.chrome.closeGestures();
    this.chrome.clearNotice();
    for (const rest of this.chrome.rests) rest.close();
    clearTimeout(this.finder.timer);
    clearTimeout(this.layingTimer);
    this.sizes.disconnect();
    for (const what of BEGINNINGS) window.removeEventListener(what, this.begun, true);
    window.removeEventListener("keydown", this.pageKey);
    window.removeEventListener("resize", this.windowResized);
    home.waiters.delete(this.wake);
    this.gestures.finish();
    this.heldKey.drop();
    this.forecast.close();
    home.alive.delete(this);
    this.net?.destroy();
    this.net = null;
    this.chrome.root.remove();
  }
}

const instances = new WeakMap();
let first = null;

// Draws what is known before a page is; `taken` is called when a component takes the canvas over.
home.drawFirst = guarded((parent, { view, data }, taken) => {
  home.views.set(view.hash, view);
  first = { canvas: new Canvas(parent), taken };
  first.canvas.update({ data, setStateValue: () => {} });
});

home.leaveFirst = guarded(() => {
  first?.canvas.destroy();
  first = null;
});

function takeFirst(parent, { key, session }) {
  if (first?.canvas.data.key !== key) return null;
  const { canvas, taken } = first;
  first = null;
  canvas.parent = parent;
  parent.append(canvas.chrome.root);
  taken();
  canvas.outbox.greet(session);
  return canvas;
}

home.first?.draw(home.drawFirst);

// Called for every change of data or theme. Cleanup belongs to an unmount, but it also comes for a
// call that was overtaken while it waited: only the latest call's cleanup counts.
home.draw = guarded((args) => {
  let canvas = instances.get(args.parentElement);
  let taken = null;
  if (!canvas) {
    taken = args.data ? takeFirst(args.parentElement, args.data) : null;
    canvas = taken ?? new Canvas(args.parentElement);
    instances.set(args.parentElement, canvas);
  }
  canvas.generation += 1;
  const { generation } = canvas;
  guarded(() => canvas.update(args))();
  // What was done before there was a session to hear of it.
  taken?.outbox.flush();
  return () => {
    setTimeout(
      guarded(() => {
        if (canvas.generation !== generation) return;
        instances.delete(args.parentElement);
        canvas.destroy();
      }),
      60,
    );
  };
});
