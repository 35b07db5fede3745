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

// A unit in which the numbers of a range are easy to read.
function unitOf(range) {
  if (range >= 2) return [1, "s"];
  return range >= 2e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
}

function tickStep(range, most) {
  const rough = range / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
}
