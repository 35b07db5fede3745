// One node: an op as a card, a closed group as a larger card with its device mix as a bar.

// Below this scale a card has no room for a title of TITLE_PX pixels, and is drawn without words.
const TEXT_SCALE = 0.31;
const TITLE_PX = 9;
// A title too long for its card at that size may be somewhat smaller before it is cut.
const LEAST_TITLE_PX = 7.5;
// Below this one the second line could not be read, and the title has the card to itself.
const SUB_SCALE = 0.58;
// The half height of the critical path's sign, of its node's lesser side.
const MARK_SHARE = 0.25;
// How strongly a card is drawn that is hardly there.
const LEAST_OPACITY = 0.3;
const fittedTexts = new Map();

// A title's size in the drawing: seen from afar, or for an audience, it grows, as far as its card
// has room. In steps of a half, because texts are measured anew for each size.
function titleSize(scale, near, most, enlarged = 1) {
  const far = Math.ceil((2 * TITLE_PX * enlarged) / scale) / 2;
  return Math.min(most, Math.max(near * enlarged, far));
}

// Whether a card has room for a second line: enlarged titles need all of it.
function isNear({ scale, theme }) {
  return scale >= SUB_SCALE && !(theme.enlarged > 1);
}

// Sets the font of a title for its card and gives its text, cut where it must be.
function titled(ctx, { theme, scale }, text, width, near, most) {
  const size = titleSize(scale, near, most, theme.enlarged);
  const fontOf = (units) => `600 ${units}px ${theme.font}`;
  ctx.font = fontOf(size);
  if (size <= near || fitted(ctx, text, width) === text) return fitted(ctx, text, width);
  const fits = Math.floor((2 * size * width) / ctx.measureText(text).width) / 2;
  const least = Math.ceil((2 * LEAST_TITLE_PX * (theme.enlarged ?? 1)) / scale) / 2;
  ctx.font = fontOf(Math.min(size, Math.max(near, least, fits)));
  return fitted(ctx, text, width);
}

// Text cut to a width with an ellipsis: at its beginning where a number at its end tells it apart.
// Measuring is slow, so results are kept.
function fitted(ctx, text, width) {
  const name = `${ctx.font}|${Math.round(width)}|${text}`;
  const known = fittedTexts.get(name);
  if (known !== undefined) return known;
  let shown = text;
  if (ctx.measureText(shown).width > width) {
    let low = 0;
    let high = text.length;
    const atEnd = /\d$/.test(text);
    const cut = (n) => (atEnd ? `…${text.slice(text.length - n)}` : `${text.slice(0, n)}…`);
    while (low < high) {
      const half = (low + high + 1) >> 1;
      if (ctx.measureText(cut(half)).width <= width) low = half;
      else high = half - 1;
    }
    shown = low > 0 ? cut(low) : "";
  }
  if (fittedTexts.size > 20000) fittedTexts.clear();
  fittedTexts.set(name, shown);
  return shown;
}

function drawNode(ctx, canvas, i) {
  const { model, theme, scale } = canvas;
  const node = model.nodes[i];
  const { w, h } = node;
  const x = node.x - w / 2;
  const y = node.y - h / 2;
  const far = scale < TEXT_SCALE;
  const radius = node.closed ? 9 : 6;
  const shade = shadeOf(canvas, i);
  const card = () => {
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, radius);
  };

  if (node.closed && !far) drawSheet(ctx, theme, shade.colour, x, y, w, h, radius);
  const opacity = opacityOf(model, i);
  if (opacity < 1) {
    card();
    ctx.fillStyle = theme.background;
    ctx.fill();
    ctx.globalAlpha = LEAST_OPACITY + (1 - LEAST_OPACITY) * opacity;
  }
  card();
  const fill = cardFill(theme, model, shade, far);
  ctx.fillStyle = fill;
  ctx.fill();
  if (shade.bands) {
    ctx.save();
    ctx.clip();
    drawBands(ctx, canvas, shade.bands, x, y, w, h, far ? 1 : tint(theme, model));
    ctx.restore();
  }
  card();
  const device = deviceAt(model.colours[i]);
  if (!model.tones) {
    const ink = far ? alpha(inkOn(fill), 0.4) : hatchInk(theme, shade.colour);
    fillHatch(ctx, hatchOf(model, device), ink, scale);
  }
  ctx.lineWidth = i === canvas.hoveredNode ? 2.4 : 1.4;
  ctx.strokeStyle = shade.colour && !model.tones ? shade.colour : theme.faint;
  ctx.stroke();

  if (!far) {
    const ink = model.tones && shade.colour ? inkOn(fill) : theme.text;
    const words = { ink, ground: isHatched(canvas, i, shade) ? alpha(fill, 0.86) : "" };
    if (node.closed) drawGroupFace(ctx, canvas, i, x, y, words);
    else drawOpFace(ctx, canvas, i, x, y, words);
  }
  ctx.globalAlpha = 1;
  drawStates(ctx, canvas, i, x, y, radius);
}

// Whether strokes of a hatch lie where a card has its words.
function isHatched({ model }, i, { bands }) {
  if (model.tones) return false;
  if (bands) return bands.some(([, , hatch]) => hatch);
  return Boolean(hatchOf(model, deviceAt(model.colours[i])));
}

// Words of a card; under them the ground is laid again where a hatch would strike them out.
function write(ctx, text, x, y, { ink, ground }) {
  if (ground && text) {
    const size = Number(/([\d.]+)px/.exec(ctx.font)[1]);
    const width = ctx.measureText(text).width + 6;
    ctx.fillStyle = ground;
    ctx.beginPath();
    ctx.roundRect(ctx.textAlign === "right" ? x - width + 3 : x - 3, y - size * 0.62, width, size * 1.24, 3);
    ctx.fill();
  }
  ctx.fillStyle = ink;
  ctx.fillText(text, x, y);
}

// How much of a colour goes into the ground under text.
function tint(theme, model) {
  if (model.tones) return 0.5;
  return theme.dark ? 0.42 : 0.26;
}

function cardFill(theme, model, { colour, bands }, far) {
  if (!colour || bands) return theme.neutral;
  return far || model.tones ? colour : blend(theme.background, colour, tint(theme, model));
}

// Lines of a hatch on a tinted card: there, but quieter than the words on top.
function hatchInk(theme, colour) {
  return alpha(blend(theme.background, colour ?? theme.faint, 0.8), theme.dark ? 0.35 : 0.5);
}

// A second sheet behind says: there is more inside.
function drawSheet(ctx, theme, colour, x, y, w, h, radius) {
  ctx.beginPath();
  ctx.roundRect(x + 4, y + 4, w, h, radius);
  ctx.fillStyle = theme.background;
  ctx.fill();
  ctx.lineWidth = 1;
  ctx.strokeStyle = alpha(colour ?? theme.faint, 0.7);
  ctx.stroke();
}

// The shares of a mixed group across its card.
function drawBands(ctx, { theme, scale }, bands, x, y, w, h, strength) {
  const total = bands.reduce((sum, [, part]) => sum + part, 0) || 1;
  let left = x;
  for (const [colour, part, hatch] of bands) {
    const share = (w * part) / total;
    ctx.beginPath();
    ctx.rect(left, y, share + 0.5, h);
    ctx.fillStyle = colour ? blend(theme.background, colour, strength) : theme.neutral;
    ctx.fill();
    const ink = strength < 1 ? hatchInk(theme, colour) : alpha(inkOn(ctx.fillStyle), 0.4);
    if (hatch) fillHatch(ctx, hatch, ink, scale);
    left += share;
  }
}

function drawOpFace(ctx, canvas, i, x, y, words) {
  const { model, theme, scale } = canvas;
  const node = model.nodes[i];
  const sub = isNear(canvas) ? node.sub : "";
  const device = deviceAt(model.colours[i]);
  const edge = edgeWidth(model);
  const left = x + edge + 7;
  const room = node.w - edge - 13;
  if (device >= 0) drawEdgeOfDevice(ctx, canvas, device, x, y, node.h);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const named = !sub && model.isOneType && node.sub ? node.sub : node.label;
  const title = titled(ctx, canvas, named, room, 12.5, 29);
  write(ctx, title, left, node.y - (sub ? 8 : 0), words);
  if (!sub) return;
  ctx.font = `400 10.5px ${theme.font}`;
  write(ctx, fitted(ctx, sub, room), left, node.y + 9, { ...words, ink: alpha(words.ink, 0.78) });
}

// The left edge of an op's card is wider where it alone has the hatch of the device.
function edgeWidth(model) {
  return model.tones && model.hatched ? 14 : 7;
}

// Set apart by a thin line where the card itself says something else than the device.
function drawEdgeOfDevice(ctx, { model, theme, scale }, device, x, y, h) {
  const width = edgeWidth(model);
  const colour = deviceColour(model.devices, device);
  ctx.beginPath();
  ctx.roundRect(x, y, width, h, [6, 0, 0, 6]);
  ctx.fillStyle = colour;
  ctx.fill();
  if (!model.tones) return;
  fillHatch(ctx, hatchOf(model, device), alpha(inkOn(colour), 0.6), scale);
  ctx.fillStyle = theme.background;
  ctx.fillRect(x + width, y, 1.5, h);
}

function drawGroupFace(ctx, canvas, i, x, y, words) {
  const { model, theme } = canvas;
  const node = model.nodes[i];
  const near = isNear(canvas);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const left = x + (near ? 12 : 8);
  const beside = titled(ctx, canvas, node.label, node.w - 44, 13, 29);
  // The plus gives way to a title that needs the whole width.
  const folds = near || beside === node.label;
  const title = folds ? beside : titled(ctx, canvas, node.label, node.w - 14, 13, 29);
  write(ctx, title, left, y + (near ? 15 : 22), words);
  if (folds) drawFold(ctx, x + node.w - 15, y + (near ? 15 : 22), true, theme);
  if (near) drawSubtitle(ctx, model, i, x, y, { ...words, ink: alpha(words.ink, 0.78) }, theme);
  drawMix(ctx, canvas, model.mixOf(i), x + 12, y + node.h - 16, node.w - 24, 8);
}

function drawSubtitle(ctx, model, i, x, y, words, theme) {
  const node = model.nodes[i];
  ctx.font = `400 11px ${theme.font}`;
  const sub = fitted(ctx, node.sub, node.w - 24);
  write(ctx, sub, x + 12, y + 32, words);
  const room = node.w - 36 - ctx.measureText(sub).width;
  drawSum(ctx, model.sums[i], x + node.w - 12, y + 32, room, words);
}

// The time of all ops inside, where there is room for it.
function drawSum(ctx, text, right, y, room, words) {
  if (!text || ctx.measureText(text).width > room) return;
  ctx.textAlign = "right";
  write(ctx, text, right, y, words);
}

// Selection ring, the ring of a guess outside of it, and the critical path's diamond.
function drawStates(ctx, canvas, i, x, y, radius) {
  const { model, theme } = canvas;
  const node = model.nodes[i];
  if (model.guessed[i] > "0") drawRing(ctx, canvas, i, x, y, radius, theme.guess, model.guessed[i] === "1", 7);
  const state = model.selected[i];
  if (state !== "0") {
    drawRing(ctx, canvas, i, x, y, radius, theme.text, state === "1");
  }
  if (model.marks[i] > "0") {
    // From afar no larger than a small part of its node, or marks would hide what they are on.
    const size = Math.min(Math.max(6, 4 / canvas.scale), MARK_SHARE * Math.min(node.w, node.h));
    ctx.beginPath();
    ctx.moveTo(x, y - size);
    ctx.lineTo(x + size, y);
    ctx.lineTo(x, y + size);
    ctx.lineTo(x - size, y);
    ctx.closePath();
    ctx.fillStyle = model.marks[i] === "2" ? theme.critical : theme.background;
    ctx.fill();
    ctx.lineWidth = 1.6;
    ctx.strokeStyle = model.marks[i] === "2" ? theme.background : theme.critical;
    ctx.stroke();
  }
}

// Around a card, dashed where it is about a part of what is inside.
function drawRing(ctx, { model, scale }, i, x, y, radius, colour, isPart, grow = 3.5) {
  const { w, h } = model.nodes[i];
  ctx.beginPath();
  ctx.roundRect(x - grow, y - grow, w + 2 * grow, h + 2 * grow, radius + grow);
  ctx.lineWidth = Math.max(2.6, 2 / scale);
  ctx.setLineDash(isPart ? [6, 5] : []);
  ctx.strokeStyle = colour;
  ctx.stroke();
  ctx.setLineDash([]);
}
