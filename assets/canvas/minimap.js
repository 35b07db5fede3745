// The minimap: the whole drawing as coloured dots with a frame around what is in sight.
//
// The dots are drawn once per picture; panning draws only the frame.

const MAP_MARGIN = 5;
// Width and height, and those on a narrow stage.
const MAP_SIZE = [168, 112];
const SMALL_MAP_SIZE = [114, 76];
const NARROW = 600;

class Minimap {
  constructor(canvas) {
    this.canvas = canvas;
    this.box = element("canvas", "minimap");
    // The map is a second way to pan, of no use to those who cannot see it.
    this.box.setAttribute("aria-hidden", "true");
    this.box.hidden = true;
    this.dots = document.createElement("canvas");
    this.drawnFor = "";
    canvas.chrome.stage.append(this.box);
    const on = (type, handler) => this.box.addEventListener(type, guarded(handler));
    on("pointerdown", (event) => {
      event.stopPropagation();
      event.preventDefault();
      this.box.setPointerCapture(event.pointerId);
      this.held = true;
      this.look(event);
    });
    on("pointermove", (event) => this.held && this.look(event));
    on("pointerup", () => this.release());
    on("pointercancel", () => this.release());
  }

  release() {
    if (this.held) this.canvas.saveCamera();
    this.held = false;
  }

  look(event) {
    const { net } = this.canvas;
    const frame = this.box.getBoundingClientRect();
    const { scale, x, y } = this.fitted();
    const position = {
      x: (event.clientX - frame.left - x) / scale,
      y: (event.clientY - frame.top - y) / scale,
    };
    net.moveTo({ position, animation: false });
    this.canvas.saveCamera();
  }

  size() {
    return this.canvas.chrome.stage.clientWidth < NARROW ? SMALL_MAP_SIZE : MAP_SIZE;
  }

  // How the drawing's coordinates become the map's: map = drawing * scale + offset.
  fitted() {
    const [width, height] = this.size();
    const { left, top, right, bottom } = this.canvas.model.extent();
    const scale = Math.min(
      (width - 2 * MAP_MARGIN) / Math.max(1, right - left),
      (height - 2 * MAP_MARGIN) / Math.max(1, bottom - top),
    );
    return {
      scale,
      x: (width - scale * (left + right)) / 2,
      y: (height - scale * (top + bottom)) / 2,
    };
  }

  // After every frame of the drawing; shown only while a part of it is out of sight.
  draw() {
    const { canvas } = this;
    const extent = canvas.model.extent();
    const { clientWidth, clientHeight } = canvas.chrome.stage;
    if (!extent || !clientWidth) return;
    const from = canvas.net.DOMtoCanvas({ x: 0, y: 0 });
    const to = canvas.net.DOMtoCanvas({ x: clientWidth, y: clientHeight });
    const all =
      from.x <= extent.left &&
      from.y <= extent.top &&
      to.x >= extent.right &&
      to.y >= extent.bottom;
    const [width, height] = this.size();
    const hidden = (all && !this.held) || clientWidth < 2 * width;
    if (this.box.hidden !== hidden) this.box.hidden = hidden;
    if (hidden) return;
    this.drawDots();
    const ratio = window.devicePixelRatio || 1;
    const ctx = this.box.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.box.width, this.box.height);
    ctx.drawImage(this.dots, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { scale, x, y } = this.fitted();
    const clamp = (value, most) => Math.min(Math.max(value, 1), most - 1);
    const [left, right] = [from.x * scale + x, to.x * scale + x].map((v) => clamp(v, width));
    const [top, bottom] = [from.y * scale + y, to.y * scale + y].map((v) => clamp(v, height));
    ctx.fillStyle = alpha(canvas.theme.text, 0.1);
    ctx.fillRect(left, top, right - left, bottom - top);
    ctx.lineWidth = 1.4;
    ctx.strokeStyle = canvas.theme.text;
    ctx.strokeRect(left, top, right - left, bottom - top);
  }

  drawDots() {
    const { model, theme } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = this.size();
    const shown = model.tones ? model.tones.by + model.tones.codes : model.colours.join("");
    const looks = [model.view.hash, shown, model.selected.join(""), theme.text];
    const name = [...looks, ratio, width].join("|");
    if (this.drawnFor === name) return;
    this.drawnFor = name;
    for (const surface of [this.box, this.dots]) {
      surface.width = width * ratio;
      surface.height = height * ratio;
    }
    this.box.style.width = `${width}px`;
    this.box.style.height = `${height}px`;
    const ctx = this.dots.getContext("2d");
    const { scale, x, y } = this.fitted();
    ctx.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * x, ratio * y);
    const least = 1.5 / scale;
    model.nodes.forEach((node, i) => {
      const [w, h] = [Math.max(node.w, least), Math.max(node.h, least)];
      ctx.fillStyle = model.selected[i] === "0" ? mapColour(this.canvas, i) : theme.text;
      ctx.fillRect(node.x - w / 2, node.y - h / 2, w, h);
    });
  }
}

// As the cards are coloured, mixed ones by their largest share, which comes first.
function mapColour(canvas, i) {
  const { colour, bands } = shadeOf(canvas, i);
  return colour ?? bands?.[0]?.[0] ?? canvas.theme.faint;
}
