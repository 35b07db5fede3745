// Edges and frames, drawn beneath the nodes in a few strokes per picture.

const BOX_HEADER = 26;
const CORNER = 8;

// Waypoints become a smooth path: level and upright stretches straight with round corners, the
// rest as curves that leave and arrive upright.
function edgePath(points) {
  const path = new Path2D();
  path.moveTo(points[0][0], points[0][1]);
  for (let k = 1; k < points.length; k += 1) {
    const [px, py] = points[k - 1];
    const [x, y] = points[k];
    const level = Math.abs(y - py) < 0.5;
    const upright = Math.abs(x - px) < 0.5;
    const next = points[k + 1];
    if (level || upright) {
      const turns =
        next && (level ? Math.abs(next[0] - x) < 0.5 : Math.abs(next[1] - y) < 0.5);
      if (turns) path.arcTo(x, y, next[0], next[1], CORNER);
      else path.lineTo(x, y);
    } else {
      const bend = (y - py) / 2;
      path.bezierCurveTo(px, py + bend, x, y - bend, x, y);
    }
  }
  return path;
}

function buildEdges(view, index) {
  return view.edges.map((edge, number) => {
    const a = view.nodes[index.get(edge.from)];
    const b = view.nodes[index.get(edge.to)];
    const points = [[a.x, a.y + a.h / 2]];
    const way = edge.way ?? [];
    for (let k = 0; k < way.length; k += 2) points.push([way[k], way[k + 1]]);
    points.push([b.x, b.y - b.h / 2]);
    const xs = points.map((p) => p[0]);
    const ys = points.map((p) => p[1]);
    return {
      number,
      from: index.get(edge.from),
      to: index.get(edge.to),
      title: edge.title,
      width: edge.width,
      tucked: Boolean(edge.tucked),
      path: edgePath(points),
      tip: points[points.length - 1],
      down: points[points.length - 1][1] >= points[points.length - 2][1],
      bounds: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)],
    };
  });
}

// Waits of the critical path: Python knows their ways, for they depend on the placement.
function buildQueues(queues) {
  return queues.map((queue) => ({
    from: queue.start,
    to: queue.end,
    title: queue.title,
    path: new Path2D(queue.way),
    tip: new Path2D(queue.arrow),
  }));
}

const PLAIN = 0;
const MAYBE = 1;
const CROSS = 2;
const LIT = 3;
// Hovering and selecting make the path's edges wider, never another colour.
const CRITICAL = 4;
const CRITICAL_LIT = 5;
const QUEUE_WIDTH = 2.4;

function isLit(model, edge, hovered) {
  return (
    model.selected[edge.from] === "2" ||
    model.selected[edge.to] === "2" ||
    edge.from === hovered ||
    edge.to === hovered
  );
}

function edgeStyle(model, edge, hovered) {
  const lit = isLit(model, edge, hovered);
  if (model.path[edge.number] === "1") return lit ? CRITICAL_LIT : CRITICAL;
  if (lit) return LIT;
  if (edge.tucked) return -1;
  return [PLAIN, MAYBE, CROSS][crossingOf(model, edge)];
}

// Does an edge carry data from device to device: 0 none of it, 1 a part, 2 all? Python knows what
// is inside closed blocks; until it has answered an edit, whole colours must do.
function crossingOf(model, edge) {
  if (model.crossings) return Number(model.crossings[edge.number]);
  const [a, b] = [model.colours[edge.from], model.colours[edge.to]];
  if (a === "*" || b === "*") return 1;
  return a === b ? 0 : 2;
}

// Edges of one style and width are one path: a picture is at most some twenty strokes.
function bundleEdges(model, hovered) {
  const bundles = new Map();
  for (const edge of model.edges) {
    const style = edgeStyle(model, edge, hovered);
    if (style < 0) continue;
    const width = Math.round(edge.width);
    const dashed = crossingOf(model, edge) > 0;
    const name = style * 100 + width * 2 + Number(dashed);
    let bundle = bundles.get(name);
    if (!bundle) {
      bundle = { style, width, dashed, path: new Path2D(), tips: new Path2D() };
      bundles.set(name, bundle);
    }
    bundle.path.addPath(edge.path);
    const [x, y] = edge.tip;
    const size = 4 + width * 0.8;
    const back = edge.down ? -size * 1.3 : size * 1.3;
    bundle.tips.moveTo(x, y);
    bundle.tips.lineTo(x - size / 1.6, y + back);
    bundle.tips.lineTo(x + size / 1.6, y + back);
    bundle.tips.closePath();
  }
  return [...bundles.entries()].sort((a, b) => a[0] - b[0]).map((entry) => entry[1]);
}

function drawEdges(ctx, bundles, theme, scale) {
  const colour = {
    [PLAIN]: theme.line,
    [MAYBE]: theme.faint,
    [CROSS]: theme.text,
    [LIT]: theme.text,
    [CRITICAL]: theme.critical,
    [CRITICAL_LIT]: theme.critical,
  };
  // Thin lines stay visible when everything is in view.
  const least = Math.min(2.2, 0.8 / scale);
  ctx.lineJoin = "round";
  for (const bundle of bundles) {
    ctx.strokeStyle = colour[bundle.style];
    ctx.fillStyle = colour[bundle.style];
    const extra = [0, 0, 0.4, 1, 0.8, 2.2][bundle.style];
    ctx.lineWidth = Math.max(bundle.width + extra, least);
    ctx.setLineDash(bundle.dashed ? [7, 4] : []);
    ctx.stroke(bundle.path);
    if (scale > 0.3) ctx.fill(bundle.tips);
  }
  ctx.setLineDash([]);
}

// Dots in the colour of the critical path: it goes on there, though no data does.
function drawQueues(ctx, { model, theme, scale, hoveredNode }) {
  ctx.strokeStyle = theme.critical;
  ctx.fillStyle = theme.critical;
  ctx.lineCap = "round";
  for (const queue of model.queues) {
    const width = QUEUE_WIDTH + (isLit(model, queue, hoveredNode) ? 1.4 : 0);
    ctx.lineWidth = Math.max(width, Math.min(2.2, 0.8 / scale));
    ctx.setLineDash([0.1, 2.6 * QUEUE_WIDTH]);
    ctx.stroke(queue.path);
    if (scale > 0.3) ctx.fill(queue.tip);
  }
  ctx.setLineDash([]);
  ctx.lineCap = "butt";
}

function drawFrames(ctx, model, theme) {
  for (const box of model.boxes) {
    ctx.beginPath();
    ctx.roundRect(box.x, box.y, box.w, box.h, 10);
    ctx.fillStyle = alpha(theme.text, theme.dark ? 0.05 : 0.035);
    ctx.fill();
    ctx.lineWidth = 1;
    ctx.strokeStyle = theme.frame;
    ctx.stroke();
  }
}

// A wide box keeps its title and its minus in sight while its left end is not.
function headerLeft(box, seen) {
  return Math.max(box.x, Math.min(seen.left, box.x + box.w - 150));
}

function drawHeaders(ctx, canvas) {
  const { model, theme, scale, hoveredBox } = canvas;
  for (const [i, box] of model.boxes.entries()) {
    if (scale < 0.22) break;
    const middle = box.y + BOX_HEADER / 2 + 1;
    const chosen = model.inside.get(box.id).every((k) => model.selected[k] === "2");
    ctx.beginPath();
    ctx.roundRect(box.x, box.y, box.w, BOX_HEADER, [10, 10, 0, 0]);
    ctx.fillStyle = alpha(theme.text, i === hoveredBox ? 0.14 : 0.07);
    ctx.fill();
    if (chosen) {
      ctx.beginPath();
      ctx.roundRect(box.x - 2, box.y - 2, box.w + 4, box.h + 4, 12);
      ctx.lineWidth = 2;
      ctx.strokeStyle = theme.text;
      ctx.stroke();
    }
    const left = headerLeft(box, canvas.seen);
    drawFold(ctx, left + 15, middle, false, theme);
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillStyle = theme.text;
    // A narrow box seen from afar has room for its title alone.
    const bar = scale < SUB_SCALE && box.w < 200 ? 0 : 44;
    const text = titled(ctx, canvas, box.label, box.x + box.w - left - (bar ? 56 : 36) - bar, 12.5, 24);
    ctx.fillText(text, left + 28, middle);
    const right = box.x + box.w - 12;
    if (bar) drawMix(ctx, canvas, model.mixOfBox(box.id), right - bar, middle - 4, bar, 8);
  }
}

// A small square with plus (closed) or minus (open).
function drawFold(ctx, x, y, closed, theme) {
  ctx.beginPath();
  ctx.roundRect(x - 6, y - 6, 12, 12, 3);
  ctx.fillStyle = theme.background;
  ctx.fill();
  ctx.lineWidth = 1;
  ctx.strokeStyle = theme.faint;
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x - 3, y);
  ctx.lineTo(x + 3, y);
  if (closed) {
    ctx.moveTo(x, y - 3);
    ctx.lineTo(x, y + 3);
  }
  ctx.strokeStyle = theme.text;
  ctx.lineWidth = 1.4;
  ctx.stroke();
}

// Shares of the devices as one bar, on whatever ground.
function drawMix(ctx, { model, theme, scale }, mix, x, y, width, height) {
  const total = mix.reduce((sum, [, ops]) => sum + ops, 0) || 1;
  const bar = () => {
    ctx.beginPath();
    ctx.roundRect(x, y, width, height, height / 2);
  };
  ctx.save();
  bar();
  ctx.clip();
  let left = x;
  for (const [device, ops] of mix) {
    const share = (width * ops) / total;
    const colour = device < 0 ? theme.frame : deviceColour(model.devices, device);
    ctx.beginPath();
    ctx.rect(left, y, share + 0.5, height);
    ctx.fillStyle = colour;
    ctx.fill();
    fillHatch(ctx, hatchOf(model, device), alpha(inkOn(colour), 0.6), scale);
    left += share;
  }
  ctx.restore();
  bar();
  ctx.lineWidth = 1;
  ctx.strokeStyle = theme.background;
  ctx.stroke();
}
