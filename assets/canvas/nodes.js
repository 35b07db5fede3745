// One node: an op as a tinted card, a closed group as a larger card with its device mix as a bar.

const TEXT_SCALE = 0.38;
const fittedTexts = new Map();

// Text cut to a width with an ellipsis; measuring is slow, so results are kept.
function fitted(ctx, text, width) {
  const name = `${ctx.font}|${Math.round(width)}|${text}`;
  const known = fittedTexts.get(name);
  if (known !== undefined) return known;
  let shown = text;
  if (ctx.measureText(shown).width > width) {
    let low = 0;
    let high = text.length;
    while (low < high) {
      const half = (low + high + 1) >> 1;
      if (ctx.measureText(`${text.slice(0, half)}…`).width <= width) low = half;
      else high = half - 1;
    }
    shown = low > 0 ? `${text.slice(0, low)}…` : "";
  }
  if (fittedTexts.size > 20000) fittedTexts.clear();
  fittedTexts.set(name, shown);
  return shown;
}

function drawNode(ctx, canvas, i) {
  const { model, theme } = canvas;
  const node = model.nodes[i];
  const { w, h } = node;
  const x = node.x - w / 2;
  const y = node.y - h / 2;
  const scale = canvas.scale;
  const mixed = model.colours[i] === "*";
  const device = deviceAt(model.colours[i]);
  const colour = device < 0 ? theme.faint : deviceColour(model.devices, device);
  const far = scale < TEXT_SCALE;
  const radius = node.closed ? 9 : 6;

  if (node.closed && !far) {
    // A second sheet behind says: there is more inside.
    ctx.beginPath();
    ctx.roundRect(x + 4, y + 4, w, h, radius);
    ctx.fillStyle = theme.background;
    ctx.fill();
    ctx.lineWidth = 1;
    ctx.strokeStyle = alpha(mixed ? theme.faint : colour, 0.7);
    ctx.stroke();
  }
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, radius);
  const tint = theme.dark ? 0.42 : 0.26;
  if (far && !mixed) ctx.fillStyle = colour;
  else if (mixed || device < 0) ctx.fillStyle = theme.neutral;
  else ctx.fillStyle = blend(theme.background, colour, tint);
  ctx.fill();
  if (mixed && !far) {
    ctx.save();
    ctx.clip();
    drawBands(ctx, canvas, model.mixOf(i), x, y, w, h, tint);
    ctx.restore();
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, radius);
  }
  ctx.lineWidth = i === canvas.hoveredNode ? 2.4 : 1.4;
  ctx.strokeStyle = mixed || device < 0 ? theme.faint : colour;
  ctx.stroke();

  if (far) {
    if (mixed) drawMix(ctx, model, model.mixOf(i), x + 3, y + 3, w - 6, h - 6, theme);
  } else if (node.closed) {
    drawGroupFace(ctx, canvas, i, x, y);
  } else {
    drawOpFace(ctx, theme, node, x, y, colour, device);
  }
  drawStates(ctx, canvas, i, x, y, radius);
}

// The shares of a mixed group as tints across its card.
function drawBands(ctx, { model, theme }, mix, x, y, w, h, tint) {
  const total = mix.reduce((sum, [, ops]) => sum + ops, 0) || 1;
  let left = x;
  for (const [device, ops] of mix) {
    const share = (w * ops) / total;
    ctx.fillStyle =
      device < 0
        ? theme.neutral
        : blend(theme.background, deviceColour(model.devices, device), tint);
    ctx.fillRect(left, y, share + 0.5, h);
    left += share;
  }
}

function drawOpFace(ctx, theme, node, x, y, colour, device) {
  if (device >= 0) {
    ctx.beginPath();
    ctx.roundRect(x, y, 6, node.h, [6, 0, 0, 6]);
    ctx.fillStyle = colour;
    ctx.fill();
  }
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillStyle = theme.text;
  ctx.font = `600 12.5px ${theme.font}`;
  ctx.fillText(fitted(ctx, node.label, node.w - 20), x + 14, node.y - (node.sub ? 8 : 0));
  if (!node.sub) return;
  ctx.fillStyle = alpha(theme.text, 0.75);
  ctx.font = `400 10.5px ${theme.font}`;
  ctx.fillText(fitted(ctx, node.sub, node.w - 20), x + 14, node.y + 9);
}

function drawGroupFace(ctx, canvas, i, x, y) {
  const { model, theme } = canvas;
  const node = model.nodes[i];
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillStyle = theme.text;
  ctx.font = `600 13px ${theme.font}`;
  ctx.fillText(fitted(ctx, node.label, node.w - 44), x + 12, y + 15);
  ctx.fillStyle = alpha(theme.text, 0.75);
  ctx.font = `400 11px ${theme.font}`;
  ctx.fillText(fitted(ctx, node.sub, node.w - 24), x + 12, y + 32);
  drawFold(ctx, x + node.w - 15, y + 15, true, theme);
  drawMix(ctx, model, model.mixOf(i), x + 12, y + node.h - 15, node.w - 24, 7, theme);
}

// Selection ring (dashed where only a part is selected) and the critical path's diamond.
function drawStates(ctx, canvas, i, x, y, radius) {
  const { model, theme } = canvas;
  const node = model.nodes[i];
  const state = model.selected[i];
  if (state !== "0") {
    const grow = 3.5;
    ctx.beginPath();
    ctx.roundRect(x - grow, y - grow, node.w + 2 * grow, node.h + 2 * grow, radius + grow);
    ctx.lineWidth = Math.max(2.6, 2 / canvas.scale);
    ctx.setLineDash(state === "1" ? [6, 5] : []);
    ctx.strokeStyle = theme.text;
    ctx.stroke();
    ctx.setLineDash([]);
  }
  if (model.marks[i] > "0") {
    const size = Math.max(6, 4 / canvas.scale);
    ctx.beginPath();
    ctx.moveTo(x, y - size);
    ctx.lineTo(x + size, y);
    ctx.lineTo(x, y + size);
    ctx.lineTo(x - size, y);
    ctx.closePath();
    ctx.fillStyle = model.marks[i] === "2" ? theme.text : theme.background;
    ctx.fill();
    ctx.lineWidth = 1.6;
    ctx.strokeStyle = theme.text;
    ctx.stroke();
  }
}
