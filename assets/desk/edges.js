// The desk's edges: the dock is dragged in height, folded and shown full, the inspector folded.
//
// All of it is a few attributes of the document, which desk.css reads. It is remembered by project
// in the browser, for the desk and for an audience apart, so that a drag never waits for Python.

const LEAST_PX = 80;
const STEP_PX = 24;
const NARROW = "(max-width: 999px)";
const root = document.documentElement;
const desks = new WeakMap();

class Desk {
  constructor(parent) {
    this.parent = parent;
    this.generation = 0;
    this.unfolded = null;
    this.pressedTab = new PressedTab();
    this.grip = parent.querySelector(".grip");
    this.buttons = Object.fromEntries(
      [...parent.querySelectorAll("button")].map((button) => [button.dataset.do, button]),
    );
    this.grip.addEventListener("pointerdown", (event) => this.grab(event));
    this.grip.addEventListener("dblclick", () => this.set({ height: 0, dock: "open" }));
    this.grip.addEventListener("keydown", (event) => this.key(event));
    for (const [what, button] of Object.entries(this.buttons)) {
      button.addEventListener("click", () => this.press(what));
    }
    // A tab that is clicked in a folded dock opens it.
    this.onTab = (event) => {
      const tab = event.target.closest?.(".st-key-desk-dock [role=tab]");
      if (tab && this.state.dock === "folded") this.set({ dock: "open" });
    };
    document.addEventListener("click", this.onTab, true);
    this.noticesOpen = false;
    this.onNotices = () => this.countNotices();
    this.noticed = new MutationObserver(this.onNotices);
    this.noticesSized = new ResizeObserver(this.onNotices);
    this.narrow = matchMedia(NARROW);
    this.onNarrow = () => this.state && this.show();
    this.narrow.addEventListener("change", this.onNarrow);
  }

  update({ project, unfold, lesson, presented }) {
    this.lesson = lesson;
    const isOther = presented !== this.presented;
    if (project !== this.project || presented !== this.presented) {
      // Another project, as the next lesson is, is read from its beginning.
      if (this.project && project !== this.project) document.querySelector(".st-key-desk-inspector")?.scrollTo({ top: 0 });
      [this.project, this.presented] = [project, presented];
      this.state = { height: 0, dock: "open", details: "", ...this.remembered() };
    }
    if (this.unfolded !== null && unfold > this.unfolded && this.state.dock === "folded") {
      this.state.dock = "open";
    }
    this.unfolded = unfold;
    this.show();
    this.watchNotices();
    if (isOther && this.notices) this.countNotices();
  }

  watchNotices() {
    const place = document.querySelector(".st-key-notices");
    if (place === this.notices) return;
    this.notices = place;
    for (const observer of [this.noticed, this.noticesSized]) observer.disconnect();
    if (!place) return;
    this.noticed.observe(place, { childList: true, subtree: true, characterData: true });
    this.noticesSized.observe(place);
    this.countNotices();
  }

  // Those below the one line that there is, and whether the one in sight is cut.
  countNotices() {
    const all = [...this.notices.querySelectorAll('[data-testid="stAlert"]')];
    if (!all.length) this.noticesOpen = false;
    if (this.presented) {
      // There they are whole: nobody in the room has a button.
      delete root.dataset.notices;
      this.buttons.notices.hidden = true;
      return;
    }
    // Counted in one line, as they are while they are shut.
    root.dataset.notices = "shut";
    const foot = this.notices.getBoundingClientRect().bottom - 2;
    const number = all.filter((one) => one.getBoundingClientRect().top >= foot).length;
    const isCut = all.some((one) => [...one.querySelectorAll("p")].some((p) => p.scrollWidth > p.clientWidth + 1));
    const button = this.buttons.notices;
    button.hidden = !number && !isCut;
    if (button.hidden) {
      delete root.dataset.notices;
      return;
    }
    root.dataset.notices = this.noticesOpen ? "open" : "shut";
    const shut = number ? `+${number}` : "…";
    const title = number ? `Show all notices: ${number} more` : "Show all of the notice";
    this.label("notices", this.noticesOpen ? "×" : shut, this.noticesOpen ? "Show one line of notices" : title);
    button.setAttribute("aria-expanded", String(this.noticesOpen));
  }

  remembered() {
    try {
      return JSON.parse(localStorage.getItem(this.place()) ?? "{}");
    } catch {
      return {};
    }
  }

  place() {
    return `placement-desk-${this.project}${this.presented ? "-presented" : ""}`;
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.show();
    try {
      localStorage.setItem(this.place(), JSON.stringify(this.state));
    } catch {
      // A browser that keeps nothing shows it all the same.
    }
  }

  // Where nobody has chosen, the inspector is folded on a screen where it would lie over the graph,
  // but not with a lesson: its text stands there.
  details() {
    return this.state.details || (!this.lesson && this.narrow.matches ? "folded" : "open");
  }

  show() {
    const { height, dock } = this.state;
    if (height) root.style.setProperty("--desk-dock", `${height}px`);
    else root.style.removeProperty("--desk-dock");
    root.dataset.dock = dock;
    root.dataset.details = this.details();
    this.label("fold", dock === "folded" ? "▴ Open" : "▾ Fold", dock === "folded" ? "Open the dock" : "Fold the dock");
    this.label("full", dock === "full" ? "Show graph" : "Full", dock === "full" ? "Show the graph above the dock again" : "Show the dock alone");
    const open = this.details() === "open";
    this.label("details", open ? "Hide details" : "Details", open ? "Fold the panel beside the graph" : "Show what is selected, and the load of each device");
    this.buttons.details.setAttribute("aria-expanded", String(open));
    this.grip.setAttribute("aria-valuenow", String(Math.round(this.height())));
  }

  label(what, text, title) {
    const button = this.buttons[what];
    button.textContent = text;
    button.title = title;
    // Whoever says aloud what to press says what is written on it.
    const [word] = text.match(/[a-z].*/i) ?? [""];
    const name = title.startsWith(word) ? title : `${word}: ${title[0].toLowerCase()}${title.slice(1)}`;
    button.setAttribute("aria-label", name);
  }

  press(what) {
    const { dock } = this.state;
    if (what === "fold") this.set({ dock: dock === "folded" ? "open" : "folded" });
    else if (what === "notices") {
      this.noticesOpen = !this.noticesOpen;
      this.countNotices();
    } else if (what === "full") this.set({ dock: dock === "full" ? "open" : "full" });
    else this.set({ details: this.details() === "open" ? "folded" : "open" });
  }

  // With the room that notices have taken of it.
  height() {
    const height = (part) => document.querySelector(part)?.getBoundingClientRect().height ?? 0;
    const notices = document.querySelector(".st-key-notices");
    const least = notices ? parseFloat(getComputedStyle(notices).minHeight) || 0 : 0;
    return height(".st-key-desk-dock") + height(".st-key-desk-working") + height(".st-key-notices") - least;
  }

  grab(event) {
    if (event.button) return;
    event.preventDefault();
    this.grip.focus({ preventScroll: true });
    this.grip.setPointerCapture(event.pointerId);
    const [from, height] = [event.clientY, this.height()];
    const move = ({ clientY }) => this.resize(height + from - clientY);
    const drop = () => {
      this.grip.removeEventListener("pointermove", move);
      this.grip.removeEventListener("lostpointercapture", drop);
    };
    this.grip.addEventListener("pointermove", move);
    this.grip.addEventListener("lostpointercapture", drop);
  }

  // Below the least height the dock folds; above, the graph keeps as much.
  resize(height) {
    if (height < LEAST_PX / 2) this.set({ dock: "folded" });
    else {
      const most = window.innerHeight - 3 * LEAST_PX;
      this.set({ dock: "open", height: Math.round(Math.min(most, Math.max(LEAST_PX, height))) });
    }
  }

  key(event) {
    const steps = { ArrowUp: STEP_PX, ArrowDown: -STEP_PX };
    if (event.key in steps) this.resize(this.height() + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.press("fold");
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  destroy() {
    this.pressedTab.destroy();
    for (const observer of [this.noticed, this.noticesSized]) observer.disconnect();
    delete root.dataset.notices;
    document.removeEventListener("click", this.onTab, true);
    this.narrow.removeEventListener("change", this.onNarrow);
    delete root.dataset.dock;
    delete root.dataset.details;
  }
}

export default function ({ data, parentElement }) {
  if (!data) return;
  let desk = desks.get(parentElement);
  if (!desk) desks.set(parentElement, (desk = new Desk(parentElement)));
  const generation = (desk.generation += 1);
  desk.update(data);
  return () => {
    if (desk.generation !== generation) return;
    desks.delete(parentElement);
    desk.destroy();
  };
}
