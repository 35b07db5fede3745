// How far a job is, asked of the studio's server past Streamlit.
//
// To draw a part of a page anew costs a tenth of a second of a core or more, which is taken from
// what is measured meanwhile. A question costs a thousandth. Python draws again, by "news", what
// the job has so far, as rarely as each answer says, and the rest of the page once it has ended.

const watches = new WeakMap();
// Answers on their way, for all that watch the same job, and when one of them told Python of news.
const shared = (globalThis.__placementJobs ??= { asked: new Map(), toldMs: -Infinity });
// Of what several parts tell at one moment Streamlit hears one.
const APART_MS = 400;
// Of the drawing: letters of the scale to the left, and of the steps' numbers below.
const [LEFT, BELOW, ABOVE] = [4.2, 1.3, 0.5];

class Watch {
  constructor(parent) {
    this.generation = 0;
    this.parent = parent;
    this.resized = new ResizeObserver(() => this.told && this.show());
    this.resized.observe(parent);
  }

  update(data, tell) {
    // It is called again for other reasons, too, with what was drawn long before the last answer.
    const isNews = this.data?.job !== data.job || data.told.stamp >= this.told.stamp;
    Object.assign(this, { data, tell, told: isNews ? data.told : this.told });
    Object.assign(this, { drawnStamp: this.told.stamp, drawnMs: performance.now() });
    this.show();
    if (!this.timer) this.later();
  }

  // At the same moments as all others that watch it.
  later() {
    const every = 1000 * this.told.look_s;
    this.timer = setTimeout(() => this.look(), every - (Date.now() % every));
  }

  async ask() {
    const { address, job } = this.data;
    const reply = await fetch(`${address}/${job}`);
    if (reply.ok) return reply.json();
    // Of a server that was started anew; what else goes wrong may be over at the next look.
    if (reply.status === 404) return null;
    throw new Error(`${reply.status}`);
  }

  async look() {
    const { job } = this.data;
    let told = this.told;
    try {
      if (!shared.asked.has(job)) shared.asked.set(job, this.ask().finally(() => shared.asked.delete(job)));
      told = await shared.asked.get(job);
    } catch {
      // Streamlit says that the server is gone, and the page is drawn again when it is back.
    }
    if (this.isOver) return;
    // Drawn anew meanwhile, after a restart of the server.
    if (job !== this.data.job) told = this.told;
    // A server that was started anew knows nothing of it until the page is drawn.
    if (!told || this.isDue(told)) this.news(told);
    if (told) {
      this.told = told;
      this.show();
    }
    this.later();
  }

  isDue({ live, stamp, draw_s }) {
    if (!live) return true;
    return this.data.draws && stamp !== this.drawnStamp && performance.now() - this.drawnMs >= 1000 * draw_s;
  }

  // Who has to wait asks again at the next look, unless the page is drawn by then.
  news(told) {
    const now = performance.now();
    if (now - shared.toldMs < APART_MS) return;
    shared.toldMs = this.drawnMs = now;
    this.drawnStamp = told?.stamp;
    this.tell(Date.now());
  }

  show() {
    if (!this.data.shown) return;
    const { share, text, steps_s } = this.told;
    const part = (name) => this.parent.querySelector(name);
    if (part("p").textContent !== text) part("p").textContent = text;
    if (part("progress").value !== share) part("progress").value = share;
    part("progress").setAttribute("aria-label", text);
    const isDrawn = this.data.lines && steps_s.length > 1;
    part("figure").hidden = !isDrawn;
    if (isDrawn) this.draw(part("svg"), part("figcaption"));
  }

  // The last steps as a line from the left to the right, what is predicted as a dashed one.
  draw(svg, caption) {
    const { steps_s: steps, num_steps: last } = this.told;
    const { predicted_s: predicted, per } = this.data;
    const { clientWidth: width, clientHeight: height } = svg;
    if (!width) return;
    const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const [left, top, foot] = [LEFT * letter, ABOVE * letter, height - BELOW * letter];
    const tick = tickStep(Math.max(...steps, predicted ?? 0) || 1, 2);
    const most = tick * Math.max(1, Math.ceil(Math.max(...steps, predicted ?? 0) / tick));
    const x = (i) => (left + ((width - left) * i) / (steps.length - 1)).toFixed(1);
    const y = (value) => (foot - ((foot - top) * value) / most).toFixed(1);
    const text = (at, said, anchor) => node("text", { ...at, "text-anchor": anchor }, said);
    const parts = [];
    for (let value = 0; value <= 1.001 * most; value += tick) {
      parts.push(node("line", { x1: left, x2: width, y1: y(value), y2: y(value) }));
      const at = { x: left - 0.4 * letter, y: y(value), "dominant-baseline": "middle" };
      parts.push(text(at, secondsText(value), "end"));
    }
    const below = { y: height - 0.15 * letter };
    parts.push(text({ ...below, x: left }, `${per} ${last - steps.length + 1}`, "start"));
    parts.push(text({ ...below, x: width }, `${per} ${last}`, "end"));
    parts.push(node("path", { d: `M${steps.map((value, i) => `${x(i)} ${y(value)}`).join("L")}` }));
    if (predicted) parts.push(node("path", { class: "predicted", d: `M${left} ${y(predicted)}H${width}` }));
    svg.replaceChildren(...parts);
    const now = `The last ${per} took ${secondsText(steps.at(-1))}`;
    caption.textContent = predicted ? `${now}; dashed: ${secondsText(predicted)}, as predicted` : now;
  }

  end() {
    this.isOver = true;
    this.resized.disconnect();
    clearTimeout(this.timer);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  let watch = watches.get(parentElement);
  if (!watch) watches.set(parentElement, (watch = new Watch(parentElement)));
  const generation = (watch.generation += 1);
  watch.update(data, (value) => setTriggerValue("news", value));
  return () => {
    if (watch.generation !== generation) return;
    watches.delete(parentElement);
    watch.end();
  };
}
