// Signs on top of a node that are no colours: the focus ring, the pin, the sheets of a stack.

const RING = { light: "#1f5fd0", dark: "#8ab4ff" };

// The further blocks of a stack, as sheets behind its card; drawn before the card.
function drawStack(ctx, canvas, i) {
  const { model, theme, scale } = canvas;
  const node = model.nodes[i];
  if (!node.stack || scale < TEXT_SCALE) return;
  for (const away of [11, 7.5]) {
    ctx.beginPath();
    ctx.roundRect(node.x - node.w / 2 + away, node.y - node.h / 2 + away, node.w, node.h, 9);
    ctx.fillStyle = theme.background;
    ctx.fill();
    ctx.lineWidth = 1;
    ctx.strokeStyle = theme.faint;
    ctx.stroke();
  }
}

function drawMarks(ctx, canvas, i) {
  const { model, theme, scale } = canvas;
  const node = model.nodes[i];
  const [left, top] = [node.x - node.w / 2, node.y - node.h / 2];
  if (model.pins[i] > "0") drawPin(ctx, left + node.w - 3, top + 1, model.pins[i] === "2", canvas);
  if (node.hiddenEdges && scale >= TEXT_SCALE) drawHiddenEdges(ctx, node, theme);
  if (canvas.ringShown && node.id === canvas.ring) {
    const grow = 7;
    ctx.beginPath();
    ctx.roundRect(left - grow, top - grow, node.w + 2 * grow, node.h + 2 * grow, 12);
    ctx.lineWidth = Math.max(3, 2.5 / scale);
    ctx.strokeStyle = theme.dark ? RING.dark : RING.light;
    ctx.stroke();
  }
}

// A drawing pin: filled where all ops of the node are pinned, hollow where some are.
function drawPin(ctx, x, y, whole, { theme, scale }) {
  const size = Math.max(5.5, 3.6 / scale);
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x, y + 2.3 * size);
  ctx.lineWidth = Math.max(1.6, 1.2 / scale);
  ctx.strokeStyle = theme.text;
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(x, y, size, 0, 2 * Math.PI);
  ctx.fillStyle = whole ? theme.text : theme.background;
  ctx.fill();
  ctx.strokeStyle = whole ? theme.background : theme.text;
  ctx.stroke();
}

// Edges that are tucked away are counted where they begin.
function drawHiddenEdges(ctx, node, theme) {
  const y = node.y + node.h / 2;
  ctx.font = `500 10px ${theme.font}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const text = `→ ${node.hiddenEdges}`;
  const width = ctx.measureText(text).width + 10;
  ctx.beginPath();
  ctx.roundRect(node.x - width / 2, y - 7, width, 14, 7);
  ctx.fillStyle = theme.background;
  ctx.fill();
  ctx.lineWidth = 1;
  ctx.strokeStyle = theme.faint;
  ctx.stroke();
  ctx.fillStyle = theme.text;
  ctx.fillText(text, node.x, y + 0.5);
}
