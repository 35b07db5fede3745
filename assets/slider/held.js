// Tells Python where a slider stands while it is held; Streamlit does so only once it is let go.
//
// A slider is known by the class that Streamlit makes of its key. Told are the numbers of two of
// its stops, where it was taken and where it stands, so that Python can pass over what it has
// heard from Streamlit itself since; and nothing, once it is let go.

const PAUSE_MS = 120;
const NAME = /^st-key-/;

class Held {
  constructor() {
    this.slider = null;
    this.timer = 0;
    this.told = null;
    this.tell = () => {};
    this.closing = new AbortController();
    const { signal } = this.closing;
    document.addEventListener("pointerdown", (event) => this.take(event), { signal, capture: true });
    for (const end of ["pointerup", "pointercancel"]) {
      document.addEventListener(end, () => this.drop(), { signal, capture: true });
    }
    this.watcher = new MutationObserver(() => this.later());
  }

  take(event) {
    const slider = event.target.closest?.(".stSlider");
    const input = slider?.querySelector('input[type="range"]');
    const name = [...(slider?.closest('[class*="st-key-"]')?.classList ?? [])].find((each) =>
      NAME.test(each),
    );
    if (!input || !name) return;
    this.slider = { name, input, from: Number(input.value) };
    this.watcher.observe(slider, { attributes: true, subtree: true, attributeFilter: ["aria-valuetext"] });
  }

  later() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      if (this.slider) this.say(Number(this.slider.input.value));
    }, PAUSE_MS);
  }

  say(at) {
    const { name, from } = this.slider;
    const told = JSON.stringify([name, from, at]);
    if (told === this.told) return;
    this.told = told;
    this.tell({ [name]: [from, at] });
  }

  // Where it stands now is Streamlit's to say, which it does before the timer is due.
  drop() {
    if (!this.slider) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.watcher.disconnect();
    if (this.told) setTimeout(() => this.tell({}), 0);
    this.slider = this.told = null;
  }

  close() {
    this.closing.abort();
    this.watcher.disconnect();
    clearTimeout(this.timer);
  }
}

const alive = new WeakMap();

export default function ({ parentElement, setStateValue }) {
  let held = alive.get(parentElement);
  if (!held) alive.set(parentElement, (held = new Held()));
  held.tell = (at) => setStateValue("held", at);
  const generation = (held.generation = (held.generation ?? 0) + 1);
  return () => {
    if (held.generation !== generation) return;
    held.close();
    alive.delete(parentElement);
  };
}
