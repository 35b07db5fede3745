// The keyboard. Every key stops here: Streamlit's own shortcuts (r, c) must not fire.

const SWALLOWED = new Set(["PageUp", "PageDown", "Home", "End"]);
// Fields that nobody types into.
const PRESSED = new Set(["button", "checkbox", "radio", "range", "submit", "reset", "file"]);
const STEPPING = new Set(["ArrowLeft", "ArrowRight"]);
const MODIFIERS = new Set(["Shift", "Control", "Alt", "Meta"]);

function handleKey(canvas, event) {
  const { key } = event;
  if (key === "Tab") return;
  // While the picture shows a step of a method, these go from step to step wherever the focus is.
  if (canvas.data?.shows && STEPPING.has(key)) return;
  event.stopPropagation();
  if (!canvas.net || canvas.menu.shown || event.target.closest?.(".tool, .chip, .find")) return;
  const command = event.ctrlKey || event.metaKey;
  const { heldKey } = canvas;
  if (heldKey.isDown && key === "Escape") {
    heldKey.drop();
    canvas.tell("Nothing was moved");
    event.preventDefault();
    return;
  }
  // What is pressed meanwhile comes after the move.
  if (heldKey.isDown && !event.repeat && !MODIFIERS.has(key)) heldKey.finish();
  if (act(canvas, event, key, command)) event.preventDefault();
}

// Whoever has just pressed a button beside the picture takes back what it did; whoever types takes
// back letters.
function handlePageKey(canvas, event) {
  const kind = backOrForth(event);
  if (!kind || event.defaultPrevented || canvas.readOnly || !canvas.net || !canvas.chrome.root.isConnected || isTyping(event)) return;
  canvas.send({ kind });
  event.preventDefault();
}

function backOrForth(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return "";
  const lower = event.key.toLowerCase();
  if (lower === "z") return event.shiftKey ? "redo" : "undo";
  return lower === "y" ? "redo" : "";
}

function isTyping(event) {
  const at = event.composedPath()[0];
  if (at.isContentEditable || at.tagName === "TEXTAREA") return true;
  if (at.tagName !== "INPUT" || PRESSED.has(at.type)) return false;
  // The field of a menu that is closed holds nothing that was typed.
  return at.getAttribute("role") !== "combobox" || at.getAttribute("aria-expanded") === "true";
}

function act(canvas, event, key, command) {
  const lower = key.toLowerCase();
  if (key === " ") {
    canvas.chooseRing(command || event.shiftKey);
    return true;
  }
  if (command) {
    if (backOrForth(event)) canvas.send({ kind: backOrForth(event) });
    else if (lower === "a") canvas.selectAll();
    else return false;
    return true;
  }
  if (event.altKey) return false;
  const device = deviceOfKey(event);
  const widened = event.shiftKey && { ArrowUp: "upstream", ArrowDown: "downstream" }[key];
  if (key === "?") canvas.chrome.toggleGestures();
  else if (key === "/") canvas.finder.open();
  else if (device !== undefined) canvas.heldKey.down(event, device);
  else if (widened) canvas.widen(widened);
  else if (key === "Escape") canvas.escape();
  else if (key === "+" || key === "=") canvas.zoom(1.3);
  else if (key === "-") canvas.zoom(1 / 1.3);
  else if (key === "Enter") canvas.enter();
  else if (key === "Backspace") canvas.leave();
  else if (key === "Delete") canvas.pinSelection(false);
  else if (key === "ContextMenu") canvas.openMenuAtSelection();
  else if (key.startsWith("Arrow")) walk(canvas, key);
  else if (LETTERS[lower]) LETTERS[lower](canvas, event);
  else return SWALLOWED.has(key);
  return true;
}

const LETTERS = {
  a: (canvas) => canvas.widen("alike"),
  f: (canvas) => canvas.fit(true),
  l: (canvas) => canvas.setLasso(!canvas.lassoNext),
  m: (canvas) => canvas.openMenuAtSelection(),
  o: (canvas) => canvas.pinOrder(),
  p: (canvas) => canvas.pinSelection(true),
  u: (canvas, event) => canvas.send({ kind: event.shiftKey ? "redo" : "undo" }),
};

// Up and down follow the data; where there is none, and sideways, the nearest node that way.
function walk(canvas, key) {
  const { model } = canvas;
  const from = startOfWalk(canvas);
  const shown = canvas.ringShown || from < 0;
  // The first arrow key shows where the ring is, the next one moves it.
  const next = from < 0 ? 0 : shown ? (alongData(model, from, key) ?? nearestThatWay(model, from, key)) : from;
  if (next !== undefined && model.nodes[next]) canvas.focusOn(next);
}

// The ring while it is seen, else what is selected, be it in part, else where the ring was.
function startOfWalk({ model, ring, ringShown }) {
  const at = model.index.get(ring) ?? -1;
  const chosen = Math.max(model.selected.lastIndexOf("2"), model.selected.includes("2") ? -1 : model.selected.indexOf("1"));
  return (ringShown && at >= 0) || chosen < 0 ? at : chosen;
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
