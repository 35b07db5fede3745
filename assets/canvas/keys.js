// The keyboard. Every key stops here: Streamlit's own shortcuts (r, c) must not fire.

const SWALLOWED = new Set([" ", "PageUp", "PageDown", "Home", "End"]);

function handleKey(canvas, event) {
  const { key } = event;
  if (key === "Tab") return;
  event.stopPropagation();
  if (!canvas.net || canvas.menu.shown || event.target.closest?.(".tool, .chip")) return;
  const command = event.ctrlKey || event.metaKey;
  if (act(canvas, event, key, command)) event.preventDefault();
}

function act(canvas, event, key, command) {
  const lower = key.toLowerCase();
  if (command) {
    if (lower === "z") canvas.send({ kind: event.shiftKey ? "redo" : "undo" });
    else if (lower === "y") canvas.send({ kind: "redo" });
    else if (lower === "a") canvas.selectAll();
    else return false;
    return true;
  }
  if (event.altKey) return false;
  // The digit's place on the keyboard counts, so that Shift and other layouts do not matter.
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code) ?? /^([1-9])$/.exec(key);
  if (digit) canvas.assignSelection(Number(digit[1]) - 1);
  else if (lower === "u") canvas.send({ kind: event.shiftKey ? "redo" : "undo" });
  else if (key === "Escape") {
    canvas.chrome.closeGestures();
    canvas.gestures.finish();
    canvas.select([]);
  } else if (key === "+" || key === "=") canvas.zoom(1.3);
  else if (key === "-") canvas.zoom(1 / 1.3);
  else if (lower === "f") canvas.fit(true);
  else if (key === "Enter") canvas.toggleSelected(true);
  else if (key === "Backspace") canvas.toggleSelected(false);
  else if (key === "ContextMenu" || lower === "m") canvas.openMenuAtSelection();
  else if (key.startsWith("Arrow")) walk(canvas, key);
  else return SWALLOWED.has(key);
  return true;
}

// Up and down follow the data; where there is none, and sideways, the nearest node that way.
function walk(canvas, key) {
  const { model } = canvas;
  const from = model.selected.lastIndexOf("2");
  const next = from < 0 ? 0 : (alongData(model, from, key) ?? nearestThatWay(model, from, key));
  if (next === undefined || !model.nodes[next]) return;
  canvas.select([model.nodes[next].id]);
  canvas.bringIntoView(next);
}

function alongData(model, from, key) {
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const down = key === "ArrowDown";
  const ends = model.edges
    .filter((edge) => (down ? edge.from : edge.to) === from)
    .map((edge) => (down ? edge.to : edge.from));
  const far = (i) =>
    Math.hypot(model.nodes[i].x - model.nodes[from].x, model.nodes[i].y - model.nodes[from].y);
  return ends.sort((a, b) => far(a) - far(b))[0];
}

function nearestThatWay(model, from, key) {
  const [dx, dy] = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[
    key
  ];
  const here = model.nodes[from];
  let best;
  let nearest = Infinity;
  model.nodes.forEach((node, i) => {
    const along = (node.x - here.x) * dx + (node.y - here.y) * dy;
    const across = Math.abs((node.x - here.x) * dy) + Math.abs((node.y - here.y) * dx);
    const far = along + 2 * across;
    if (i !== from && along > 1 && far < nearest) [best, nearest] = [i, far];
  });
  return best;
}
