// Hatches of the devices: strokes on a small tile, the same size on the screen at every zoom.

const TILE = 8;
const hatchTiles = new Map();

// A canvas with one tile, drawn at the screen's resolution; null for the plain pattern.
function hatchTile(path, colour) {
  if (!path) return null;
  const ratio = window.devicePixelRatio || 1;
  const name = `${path}|${colour}|${ratio}`;
  const known = hatchTiles.get(name);
  if (known) return known;
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(TILE * ratio);
  const ctx = tile.getContext("2d");
  ctx.scale(tile.width / TILE, tile.height / TILE);
  ctx.lineWidth = 1.5;
  ctx.lineCap = "round";
  ctx.strokeStyle = colour;
  ctx.stroke(new Path2D(path));
  if (hatchTiles.size > 400) hatchTiles.clear();
  hatchTiles.set(name, tile);
  return tile;
}

// Fills the current path of a drawing that is zoomed by `scale`.
function fillHatch(ctx, path, colour, scale) {
  const tile = hatchTile(path, colour);
  if (!tile) return;
  const pattern = ctx.createPattern(tile, "repeat");
  const size = TILE / tile.width / scale;
  pattern.setTransform(new DOMMatrix([size, 0, 0, size, 0, 0]));
  ctx.fillStyle = pattern;
  ctx.fill();
}

// A swatch of an HTML legend in a device's colour, with its hatch where wanted.
function paintSwatch(swatch, colour, path) {
  // Under a digit the strokes are faint, and the digit stands on a glow of the colour.
  const hasText = Boolean(swatch.textContent);
  const tile = hatchTile(path, alpha(inkOn(colour), hasText ? 0.35 : 0.6));
  swatch.style.textShadow = hasText && tile ? `0 0 3px ${colour}, 0 0 3px ${colour}, 0 0 3px ${colour}` : "";
  swatch.style.backgroundColor = colour;
  swatch.style.backgroundImage = tile ? `url(${tile.toDataURL()})` : "";
  swatch.style.backgroundSize = `${TILE}px ${TILE}px`;
}
