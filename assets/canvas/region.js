// Box and lasso: a polygon drawn over the canvas, and which nodes it takes.

function polygonHolds(points, x, y) {
  let inside = false;
  for (let a = 0, b = points.length - 1; a < points.length; b = a, a += 1) {
    const [ax, ay] = points[a];
    const [bx, by] = points[b];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

class Region {
  constructor(canvas, x, y, lasso) {
    this.canvas = canvas;
    this.lasso = lasso;
    this.points = [[x, y]];
    this.end = [x, y];
  }

  extend(x, y) {
    this.end = [x, y];
    const [px, py] = this.points[this.points.length - 1];
    if (this.lasso && Math.hypot(x - px, y - py) > 4) this.points.push([x, y]);
    this.draw();
  }

  draw() {
    const { overlay, theme } = this.canvas;
    const ctx = overlay.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, overlay.width, overlay.height);
    ctx.beginPath();
    if (this.lasso) {
      this.points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
      ctx.closePath();
    } else {
      const [x, y] = this.points[0];
      ctx.rect(x, y, this.end[0] - x, this.end[1] - y);
    }
    ctx.fillStyle = alpha(theme.text, 0.08);
    ctx.fill();
    ctx.setLineDash([5, 4]);
    ctx.lineWidth = 1.4;
    ctx.strokeStyle = theme.text;
    ctx.stroke();
    ctx.setLineDash([]);
  }

  clear() {
    const { overlay } = this.canvas;
    overlay.getContext("2d").clearRect(0, 0, overlay.width, overlay.height);
  }

  // A box takes what it touches, a lasso what has its centre inside.
  nodes() {
    const { model, net } = this.canvas;
    const corners = (this.lasso ? this.points : [this.points[0], this.end]).map(([x, y]) => {
      const p = net.DOMtoCanvas({ x, y });
      return [p.x, p.y];
    });
    if (this.lasso) {
      return model.nodes.filter((node) => polygonHolds(corners, node.x, node.y)).map((n) => n.id);
    }
    const [[ax, ay], [bx, by]] = corners;
    const [left, right] = [Math.min(ax, bx), Math.max(ax, bx)];
    const [top, bottom] = [Math.min(ay, by), Math.max(ay, by)];
    return model.nodes
      .filter(
        (n) =>
          n.x + n.w / 2 >= left &&
          n.x - n.w / 2 <= right &&
          n.y + n.h / 2 >= top &&
          n.y - n.h / 2 <= bottom,
      )
      .map((n) => n.id);
  }
}
