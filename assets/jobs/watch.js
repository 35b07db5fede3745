// How far a job is, asked of the studio's server past Streamlit.
//
// To draw a part of a page anew costs a tenth of a second of a core or more, which is taken from
// what is measured meanwhile. A question costs a thousandth. Python draws again, by "news", what
// the job has so far, as rarely as each answer says, and the rest of the page once it has ended.

const watches = new WeakMap();
const [WIDTH, HEIGHT] = [600, 120];
// Answers on their way, for all that watch the same job.
const asked = (globalThis.__placementJobs ??= new Map());

class Watch {
  constructor(parent) {
    this.generation = 0;
    this.parent = parent;
  }

  update(data, tell) {
    Object.assign(this, { data, tell, stamp: data.told.stamp, drawnMs: performance.now() });
    this.show(data.told);
    if (!this.timer) this.later(data.told);
  }

  // At the same moments as all others that watch it.
  later({ look_s }) {
    const every = 1000 * look_s;
    this.timer = setTimeout(() => this.look(), every - (Date.now() % every));
  }

  async ask() {
    const { address, job } = this.data;
    const reply = await fetch(`${address}/${job}`);
    return reply.ok ? reply.json() : null;
  }

  async look() {
    const { job } = this.data;
    let told = this.data.told;
    try {
      if (!asked.has(job)) asked.set(job, this.ask().finally(() => asked.delete(job)));
      told = await asked.get(job);
    } catch {
      // Streamlit says that the server is gone, and the page is drawn again when it is back.
    }
    if (this.isOver) return;
    // A server that was started anew knows nothing of it until the page is drawn.
    if (!told || this.isDue(told)) {
      this.stamp = told?.stamp;
      this.drawnMs = performance.now();
      this.tell(Date.now());
    }
    if (told) this.show(told);
    this.later(told ?? this.data.told);
  }

  isDue({ live, stamp, draw_s }) {
    if (!live) return true;
    return this.data.draws && stamp !== this.stamp && performance.now() - this.drawnMs >= 1000 * draw_s;
  }

  show({ share, text, steps_ms }) {
    if (!this.data.shown) return;
    const part = (name) => this.parent.querySelector(name);
    if (part("p").textContent !== text) part("p").textContent = text;
    if (part("progress").value !== share) part("progress").value = share;
    part("progress").setAttribute("aria-label", text);
    const isDrawn = this.data.lines && steps_ms.length > 1;
    part("figure").hidden = !isDrawn;
    if (isDrawn) this.draw(steps_ms, part);
  }

  // The last steps as a line from the left to the right, what is predicted as a dashed one.
  draw(steps, part) {
    const predicted = this.data.predicted_ms;
    const most = 1.1 * Math.max(...steps, predicted ?? 0);
    const at = (ms) => (HEIGHT * (1 - ms / most)).toFixed(1);
    const point = (ms, i) => `${((WIDTH * i) / (steps.length - 1)).toFixed(1)},${at(ms)}`;
    part(".steps").setAttribute("points", steps.map(point).join(" "));
    part(".predicted").setAttribute("points", predicted ? `0,${at(predicted)} ${WIDTH},${at(predicted)}` : "");
    const said = (ms) => `${ms.toPrecision(3)} ms`;
    const last = `${this.data.per} ${said(steps.at(-1))}`;
    part("figcaption").textContent = predicted ? `${last}, predicted ${said(predicted)} (dashed)` : last;
  }

  end() {
    this.isOver = true;
    clearTimeout(this.timer);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  let watch = watches.get(parentElement);
  // Another job has a watch of its own.
  if (watch && watch.data.job !== data.job) {
    watch.end();
    watch = null;
  }
  if (!watch) watches.set(parentElement, (watch = new Watch(parentElement)));
  const generation = (watch.generation += 1);
  watch.update(data, (value) => setTriggerValue("news", value));
  return () => {
    if (watch.generation !== generation) return;
    watches.delete(parentElement);
    watch.end();
  };
}
