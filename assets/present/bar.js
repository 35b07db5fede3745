// The presenter's bar: one sentence of what is seen, and keys that work wherever the focus is.
//
// A clicker sends Page Down and Page Up to whatever has the focus, so keys are heard before anything
// on the page hears them. Those that are the picture's are handed on to it where nothing has the
// focus that has keys of its own; whoever clicks in the dock does not take the keys away. Steps go to
// Python by their number, so that quick presses never overtake each other.

const bars = new WeakMap();
// Where a key is text, or moves something of its own.
const PRESSED = ":is([type=checkbox], [type=radio])";
const TYPING = `input:not(${PRESSED}), textarea, select, [contenteditable=true], [role=combobox], [role=slider], [role=spinbutton]`;
// What has the focus when somebody clicked where there is nothing.
const EMPTY = "html, body, .stMain, [role=tabpanel]";
// What does nothing with keys but being pressed; what is open has Escape, too.
const BUTTON = "button:not([role], [aria-haspopup], [aria-expanded=true]), summary";
const PARTS = ".st-key-desk-dock, .st-key-desk-edges";
const TURNS = { PageDown: 1, PageUp: -1 };
const ARROWS = { ArrowRight: 1, ArrowLeft: -1 };
// The keys of a button.
const PRESSING = new Set(["Tab", "Enter", " ", "Shift", "Control", "Alt", "Meta"]);
// Of what is in sight so much is new after a scroll: titles and the axis lie over some of it.
const SCROLLED = 0.5;
const TABS = { "]": 1, "[": -1 };
const ENDS = { Home: 0, End: Infinity };
// Of a method that is followed: play, and an answer to the question of a step.
const PLAYER = /^(?:Space|(?:Digit|Numpad)[1-9])$/;

class Bar {
  constructor(parent) {
    this.root = parent.querySelector(".bar");
    this.outbox = new Outbox();
    this.generation = 0;
    this.to = 0;
    for (const [name, act] of Object.entries(this.verbs())) {
      this.button(name).addEventListener("click", act);
    }
    this.heard = (event) => this.key(event);
    window.addEventListener("keydown", this.heard, true);
    // Of a click the focus is known afterwards.
    this.clicked = (event) => event.detail && setTimeout(() => this.release());
    window.addEventListener("click", this.clicked, true);
    this.focusPicture();
  }

  // After a click in the dock keys go on with what is shown: they neither go from tab to tab nor
  // press a button again.
  release() {
    const around = document.activeElement, focused = deepest(around);
    if (!around?.closest(PARTS) || !focused.matches(`${BUTTON}, [role=tab], input${PRESSED}`)) return;
    if (!this.focusPicture()) focused.blur();
  }

  // While the dock is shown alone the picture is there, but hidden.
  focusPicture() {
    const picture = this.picture();
    if (!picture?.checkVisibility({ visibilityProperty: true })) return false;
    picture.focus({ preventScroll: true });
    return true;
  }

  verbs() {
    return {
      back: () => this.go(this.to - 1),
      on: () => this.go(this.to + 1),
      keys: () => this.showKeys(this.list().hidden),
      leave: () => this.leave(),
    };
  }

  button(name) {
    return this.root.querySelector(`[data-do="${name}"]`);
  }

  list() {
    return this.root.querySelector(".keys");
  }

  // What takes the keys of the graph.
  picture() {
    const alive = [...(globalThis.__placementCanvas?.alive ?? [])];
    return alive.find((canvas) => canvas.parent.isConnected)?.chrome.root;
  }

  show(data, send) {
    this.data = data;
    // A bar may be made anew while the view ends; only the next view is large again.
    const root = document.documentElement;
    if (root.dataset.presented !== data.view) delete root.dataset.presented;
    this.outbox.send = send;
    this.outbox.acknowledge(data.session, data.ack);
    if (!this.outbox.queue.length) this.to = data.at;
    const told = this.root.querySelector(".told");
    // Set only where it is another one, or a reader would say it again.
    if (told.textContent !== data.told) told.textContent = data.told;
    this.root.querySelector(".at").textContent = `${data.at} / ${data.of}`;
    this.button("back").setAttribute("aria-disabled", String(data.at <= data.first));
    this.button("on").setAttribute("aria-disabled", String(data.at >= data.last));
    this.showWalks();
    if (!this.list().children.length) {
      for (const [keys, means] of data.keys) this.list().append(made("dt", keys), made("dd", means));
    }
  }

  showWalks() {
    const row = this.root.querySelector(".walks"), drawn = JSON.stringify(this.data.walks);
    if (row.dataset.drawn !== drawn) {
      row.dataset.drawn = drawn;
      row.replaceChildren();
      for (const [walk, name] of this.data.walks) {
        const button = made("button", name);
        button.type = "button";
        button.dataset.walk = walk;
        // Where there is room for one, it is the one that is on: a press leads to the other.
        button.addEventListener("click", () => (walk === this.data.walk ? this.other() : this.follow(walk)));
        row.append(button);
      }
    }
    for (const button of row.children) {
      const isOn = button.dataset.walk === this.data.walk;
      const name = button.textContent.replace(/^./, (first) => first.toLowerCase());
      button.setAttribute("aria-pressed", String(isOn));
      button.title = isOn ? `Steps follow the ${name}; T changes that` : `Step along the ${name} (T)`;
    }
  }

  showKeys(open) {
    this.list().hidden = !open;
    this.button("keys").setAttribute("aria-expanded", String(open));
  }

  go(to) {
    const aim = Math.max(this.data.first, Math.min(to, this.data.last));
    if (aim === this.to) return;
    this.to = aim;
    this.outbox.push({ kind: "go", to: aim });
  }

  key(event) {
    const target = event.composedPath()[0];
    // At the document is what was handed to the player of a method.
    if (!this.data || !target.matches || isCommand(event) || target.closest(TYPING)) return;
    // The picture's own search field, menus and lists keep their keys.
    const isIdle = target.matches(EMPTY);
    const isPicture = target === this.picture();
    const isButton = this.root.contains(target) || (target.matches(BUTTON) && !this.picture()?.contains(target) && !target.closest("[role=toolbar], [role=dialog]"));
    const isFree = isIdle || isPicture || isButton;
    if (event.key in TURNS) this.go(this.to + TURNS[event.key]);
    else if (isFree && !event.shiftKey && event.key in ARROWS) this.go(this.to + ARROWS[event.key]);
    else if (isFree && event.key in ENDS) this.go(ENDS[event.key]);
    else if (isFree && event.key.toLowerCase() === "t") this.other();
    else if (isFree && event.key.toLowerCase() === "d") scrollOn(document.querySelector(".st-key-desk-dock"));
    else if (isFree && event.key in TABS) this.turn(TABS[event.key]);
    else if (isFree && event.key.toLowerCase() === "h") this.hideGraph();
    else if (isFree && this.data.walk === "method" && this.isForPlayer(event)) handToPlayer(event);
    else if (isFree && event.key === "?") this.showKeys(this.list().hidden);
    else if (event.key === "Escape" && isFree) {
      if (!this.list().hidden) this.showKeys(false);
      else if (isPicture && this.isSelected()) return;
      else if (this.isSelected()) this.handOn(event);
      else this.leave();
    } else if (this.picture() && event.key !== "Tab" && (isIdle || (isButton && !PRESSING.has(event.key)))) this.handOn(event);
    else return;
    // Streamlit frames all of the page while that has the focus and keys are pressed.
    if (isIdle) target.blur();
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  // To the tab of the dock after the one that is open, or before it.
  turn(by) {
    const tabs = [...(document.querySelector(".st-key-desk-dock [role=tablist]")?.querySelectorAll("[role=tab]") ?? [])];
    const at = tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    tabs[at + by]?.click();
    setTimeout(() => this.release());
  }

  // The dock alone, or beside the graph again.
  hideGraph() {
    const edges = [...document.querySelectorAll(".st-key-desk-edges *")].find((one) => one.shadowRoot);
    edges?.shadowRoot.querySelector("[data-do=full]").click();
    setTimeout(() => this.release());
  }

  // Where a button here has the focus, Space is its own.
  isForPlayer(event) {
    return PLAYER.test(event.code) && !(event.code === "Space" && event.composedPath()[0].closest?.("button"));
  }

  // The large letters end at once, their style sheet only when all of the page has been drawn.
  leave() {
    const root = document.documentElement;
    root.dataset.presented = this.data.view;
    const ending = setInterval(() => {
      if (getComputedStyle(root).getPropertyValue("--presenting")) return;
      delete root.dataset.presented;
      clearInterval(ending);
    }, 100);
    this.outbox.push({ kind: "leave" });
  }

  // Something is selected, which Escape lets go of first.
  isSelected() {
    return Boolean(globalThis.__placementCanvas?.probe?.("canvas")?.numSelected);
  }

  // The picture gets a key that nothing else has the focus for, or had it since a reload.
  handOn(event) {
    this.focusPicture();
    this.picture().dispatchEvent(new KeyboardEvent("keydown", event));
  }

  other() {
    const walks = this.data.walks.map(([walk]) => walk);
    this.follow(walks[(walks.indexOf(this.data.walk) + 1) % walks.length]);
  }

  follow(walk) {
    this.outbox.push({ kind: "follow", walk });
  }

  close() {
    window.removeEventListener("keydown", this.heard, true);
    window.removeEventListener("click", this.clicked, true);
    this.outbox.close();
  }
}

// On many keyboards brackets need AltGr, which some systems send as Ctrl and Alt.
function isCommand(event) {
  return (event.ctrlKey || event.metaKey || event.altKey) && !(event.key in TABS && event.getModifierState("AltGraph"));
}

// What has the focus, inside of components too.
function deepest(element) {
  return element?.shadowRoot?.activeElement ? deepest(element.shadowRoot.activeElement) : element;
}

// What is further down in a part of the page, which nobody scrolls by hand before an audience: inside
// first, and after the end its beginning.
function scrollOn(part) {
  const high = scrollersIn(part), { top, bottom } = part.getBoundingClientRect();
  const isSeen = (box) => box.top < bottom - 1 && box.bottom > top + 1;
  const next = high.find((one) => one.scrollTop + one.clientHeight < one.scrollHeight - 1 && isSeen(one.getBoundingClientRect()));
  if (next) next.scrollTop += SCROLLED * next.clientHeight;
  else for (const one of high) one.scrollTop = 0;
}

// What can be scrolled in it, the innermost first.
function scrollersIn(part) {
  const inside = [...(part.shadowRoot?.children ?? []), ...part.children].flatMap(scrollersIn);
  const isHigh = part.scrollHeight > part.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(part).overflowY);
  return isHigh ? [...inside, part] : inside;
}

// The player of a method hears keys at the document, wherever the focus is.
function handToPlayer(event) {
  document.dispatchEvent(new KeyboardEvent("keydown", event));
}

function made(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

export default function ({ data, parentElement, setStateValue }) {
  if (!data) return;
  let bar = bars.get(parentElement);
  if (!bar || !bar.root.isConnected) {
    bar?.close();
    bars.set(parentElement, (bar = new Bar(parentElement)));
  }
  bar.show(data, (steps) => setStateValue("steps", steps));
  const generation = (bar.generation += 1);
  return () => {
    if (bar.generation !== generation) return;
    bar.close();
    bars.delete(parentElement);
  };
}
