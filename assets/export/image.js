// The button that saves the canvas as a PNG: title, picture, and what the colours mean.

const PAD = 16;
const TITLE = 34;
const ROW = 26;

// The canvas that is on the screen, as the canvas component knows it.
function canvasOnScreen() {
  const alive = globalThis.__placementCanvas?.alive ?? [];
  return [...alive].find((one) => one.net && one.parent.isConnected && one.model.view);
}

// Entries of the legend as [colour, text]; without a colour the text stands alone. A third part
// makes the colour a row of dots.
function legendOf({ model, theme }) {
  const counts = model.counts;
  const devices = model.devices.map((device, i) => {
    const ops = counts[i] === undefined ? "" : `: ${counts[i]} ${counts[i] === 1 ? "op" : "ops"}`;
    return [device.colour, `${device.label}${ops}`];
  });
  if (/[12]/.test(model.marks)) devices.push([theme.critical, "critical path"]);
  if (model.queues.length) devices.push([theme.critical, "waits its turn", true]);
  if (!model.tones) return devices;
  const { title, keys, ends } = model.tones;
  const steps = keys.map(([label, colour]) => [colour, ends ? "" : label]);
  if (!ends) return [...devices, [null, title], ...steps];
  return [...devices, [null, `${title}: ${ends[0]}`], ...steps, [null, ends[1]]];
}

// Places of the entries in rows of a width, and the number of rows.
function rowsOf(ctx, entries, width) {
  let [x, row] = [PAD, 0];
  const places = entries.map(([colour, text, dotted]) => {
    const needed = (colour ? 20 : 0) + (text ? ctx.measureText(text).width + 16 : 0);
    if (x > PAD && x + needed > width - PAD) [x, row] = [PAD, row + 1];
    const place = { colour, text, dotted, x, row };
    x += needed;
    return place;
  });
  return [places, row + 1];
}

function picture(canvas, title) {
  const { theme } = canvas;
  const drawn = canvas.net.canvas.frame.canvas;
  const scale = drawn.width / Math.max(1, drawn.clientWidth);
  const width = drawn.clientWidth;
  const made = document.createElement("canvas");
  const ctx = made.getContext("2d");
  const font = (size, weight) => `${weight} ${size}px ${theme.font}`;
  ctx.font = font(13, 400);
  const [places, rows] = rowsOf(ctx, legendOf(canvas), width);
  const height = TITLE + drawn.clientHeight + PAD + rows * ROW;
  made.width = Math.round(width * scale);
  made.height = Math.round(height * scale);
  ctx.fillStyle = theme.background;
  ctx.fillRect(0, 0, made.width, made.height);
  ctx.drawImage(drawn, 0, Math.round(TITLE * scale));
  ctx.scale(scale, scale);
  ctx.fillStyle = theme.text;
  ctx.textBaseline = "middle";
  ctx.font = font(15, 600);
  ctx.fillText(title, PAD, TITLE / 2, width - 2 * PAD);
  ctx.font = font(13, 400);
  for (const { colour, text, dotted, x, row } of places) {
    const y = TITLE + drawn.clientHeight + PAD / 2 + (row + 0.5) * ROW;
    if (colour) {
      ctx.fillStyle = colour;
      if (dotted) for (const at of [0, 5, 10]) ctx.fillRect(x + at, y - 1.5, 3, 3);
      else ctx.fillRect(x, y - 7, 14, 14);
    }
    ctx.fillStyle = theme.text;
    ctx.fillText(text, x + (colour ? 20 : 0), y, width - x - PAD);
  }
  return made;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  const said = parentElement.querySelector("p");
  button.title = data.help;
  button.onclick = () => {
    said.textContent = "";
    const canvas = canvasOnScreen();
    if (!canvas) {
      said.textContent = "There is no picture on this page.";
      return;
    }
    picture(canvas, data.title).toBlob((blob) => {
      if (blob) save(blob, data.file);
      else said.textContent = "The browser could not make the image.";
    }, "image/png");
  };
}
