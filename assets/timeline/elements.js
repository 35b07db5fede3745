// Elements with their text set as text, whatever a model file says, and numbers that read easily.

const SVG = "http://www.w3.org/2000/svg";

function node(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

function html(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

// How much larger an element is on the screen than its own measures say: pointers are measured there.
function zoomOf(element) {
  return element.offsetWidth ? element.getBoundingClientRect().width / element.offsetWidth : 1;
}

// The element around another that scrolls up and down; null for none.
function scrollerOf(element) {
  for (let at = element.parentElement ?? element.getRootNode().host; at; at = at.parentElement ?? at.getRootNode().host) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  }
  return null;
}

// Where the first words of a text element end.
function endOf(text) {
  return Number(text.getAttribute("x")) + text.getSubStringLength(0, text.firstChild.length);
}

// Write as many of the words as there is room for, with dots and a tooltip where these are not all.
function shorten(text, words, room) {
  text.textContent = words;
  if (text.getComputedTextLength() <= room) return;
  const dots = 13;
  let kept = words.length - 1;
  while (kept && text.getSubStringLength(0, kept) > room - dots) kept -= 1;
  text.textContent = `${words.slice(0, kept).trimEnd()}…`;
  text.append(node("title", {}, words));
}

// A unit in which the numbers of a range are easy to read.
function unitOf(range) {
  if (range >= 2) return [1, "s"];
  return range >= 2e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
}

// A time as it reads everywhere: three digits and a fitting unit.
function secondsText(value) {
  const unit = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([scale]) => Math.abs(value) >= 0.9995 * scale);
  if (!unit) return value === 0 ? "0 s" : `${Number((value / 1e-6).toPrecision(2))} µs`;
  const number = value / unit[0];
  return `${Math.abs(number) < 999.5 ? Number(number.toPrecision(3)) : number.toFixed(0)} ${unit[1]}`;
}

function tickStep(range, most) {
  const rough = range / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
}
