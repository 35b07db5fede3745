// A window for tests and benchmarks: reads what is on the screen, changes nothing.

// `early` sees the canvas also before there is a session, as somebody in front of the screen does.
home.probe = (key = "canvas", early = false) => {
  // Streamlit draws now and then into an element that it throws away: that is not on the screen.
  const shown = [...home.alive].filter(
    (c) => c.data.key === key && c.parent.isConnected && (early || c !== first?.canvas),
  );
  const canvas = shown[shown.length - 1];
  if (!canvas?.net) return null;
  const { model } = canvas;
  const frame = canvas.chrome.stage.getBoundingClientRect();
  const scale = canvas.net.getScale();
  const page = (x, y) => {
    const p = canvas.net.canvasToDOM({ x, y });
    return { x: p.x + frame.left, y: p.y + frame.top };
  };
  return {
    view: model.view?.hash,
    drawn: canvas.drawn,
    scale,
    titlePx: scale < TEXT_SCALE ? 0 : scale * titleSize(scale, 13, 29, canvas.theme.enlarged),
    dark: canvas.theme.dark,
    stage: { left: frame.left, top: frame.top, width: frame.width, height: frame.height },
    selection: model.selection(),
    pending: canvas.outbox.queue.length,
    confirmed: canvas.confirmed,
    counts: model.counts,
    status: canvas.chrome.status.textContent,
    numSelected: model.numSelectedOps(),
    ring: canvas.ringShown ? canvas.ring : null,
    said: canvas.chrome.live.textContent,
    found: canvas.finder.bar.hidden ? null : canvas.finder.count.textContent,
    laying: !canvas.chrome.laying.hidden,
    map: canvas.minimap.box.hidden ? null : canvas.minimap.box.getBoundingClientRect().toJSON(),
    centre: canvas.net.getViewPosition(),
    busy: canvas.chrome.root.hasAttribute("aria-busy"),
    error: home.lastError ?? null,
    nodes: model.nodes.map((node, i) => ({
      id: node.id,
      label: node.label,
      sub: node.sub,
      closed: Boolean(node.closed),
      parent: node.parent,
      ops: node.ops,
      device: deviceAt(model.colours[i]),
      colour: deviceColour(model.devices, deviceAt(model.colours[i])),
      mix: model.mixOf(i),
      tone: model.tones?.codes[i] ?? "",
      fill: cardFill(canvas.theme, model, shadeOf(canvas, i), scale < TEXT_SCALE),
      selected: model.selected[i],
      mark: model.marks[i],
      opacity: opacityOf(model, i),
      guessed: model.guessed[i] > "0",
      pin: model.pins[i],
      stack: node.stack ?? 0,
      hiddenEdges: node.hiddenEdges ?? 0,
      w: node.w * scale,
      h: node.h * scale,
      ...page(node.x, node.y),
    })),
    boxes: model.boxes.map((box) => ({
      id: box.id,
      label: box.label,
      w: box.w * scale,
      h: box.h * scale,
      ...page(box.x, box.y),
    })),
    edges: model.edges.map((edge) => ({
      from: edge.from,
      to: edge.to,
      width: edge.width,
      tucked: edge.tucked,
      style: edgeStyle(model, edge, -1),
      styleNow: edgeStyle(model, edge, canvas.hoveredNode),
      onPath: model.path[edge.number] === "1",
    })),
    queues: model.queues.map(({ from, to, title }) => ({ from, to, title })),
    tooltip: canvas.tooltip.box.hidden ? null : canvas.tooltip.box.innerText,
  };
};

// Last of all: everything is defined, waiting canvases may draw.
home.ready ??= new Promise((resolve) => (home.announce = resolve));
home.announce?.();
