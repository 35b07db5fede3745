// The controls of a walk through the steps of a method, and what the step on the screen says.
//
// Everything shown is text that Python has made. A step is on the screen once Python has sent it;
// playing waits for each before it goes on to the next.

const PACE_MS = 1100;
// Lines that a step needs; where fewer fit the place is scrolled.
const LEAST_PX = 60;
const alive = (globalThis.__placementSteps ??= new WeakMap());

function made(name, className = "", text = "") {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}

class Player {
  constructor(parent) {
    this.root = parent.querySelector(".player");
    this.slider = this.root.querySelector("input");
    this.outbox = new Outbox();
    this.timer = 0;
    this.playing = false;
    this.wanted = null;
    const closing = (this.closing = new AbortController());
    const { signal } = closing;
    for (const button of this.root.querySelectorAll(".bar button")) {
      // The keys stay with the page after a click.
      button.addEventListener("mousedown", (event) => event.preventDefault(), { signal });
      button.addEventListener("click", () => this.press(button.dataset.go), { signal });
    }
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)), { signal });
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    this.body = this.root.querySelector(".body");
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.root);
    this.scroller = null;
  }

  close() {
    this.closing.abort();
    this.watcher.disconnect();
    this.outbox.close();
    clearTimeout(this.timer);
  }

  show(data, send) {
    this.outbox.send = send;
    this.outbox.acknowledge(data.session, data.ack);
    const isOther = data.of !== this.data?.of;
    if (this.data && isOther) this.pause();
    this.data = data;
    if (isOther) this.takeKeys();
    const settled = !this.outbox.queue.length;
    if (settled) this.wanted = null;
    this.draw();
    if (data.blocked || this.at >= data.num - 1) this.pause();
    else if (this.playing && settled) this.later();
  }

  // Who has clicked the tab, or chosen the method, goes on with the keys of what is shown; who came
  // to the tabs by keys stays there.
  takeKeys() {
    const at = document.activeElement;
    const wasChosen = at?.matches("[role=combobox]") && at.closest("[class*=st-key-steps-method]");
    if (wasChosen || at?.matches("[role=tab]:not(:focus-visible)")) this.root.focus({ preventScroll: true });
  }

  // Where somebody wants to be, before Python has heard of it.
  get at() {
    return this.wanted ?? this.data.at;
  }

  // Up to the next question that is open.
  get furthest() {
    return this.data.furthest;
  }

  go(at) {
    const next = Math.min(Math.max(0, at), this.furthest);
    if (next === this.at) return this.controls();
    this.wanted = next;
    this.outbox.push({ kind: "go", at: next });
    this.controls();
  }

  answer(choice) {
    const { question, at, blocked } = this.data;
    if (blocked && question && choice < question.choices.length) {
      this.outbox.push({ kind: "answer", at, choice });
    }
  }

  press(what) {
    if (what === "play") return this.playing ? this.pause() : this.play();
    this.pause();
    const to = { first: 0, back: this.at - 1, forward: this.at + 1, last: this.data.num - 1 }[what];
    this.go(to);
  }

  play() {
    if (this.data.blocked) return;
    this.playing = true;
    this.go(this.at >= this.data.num - 1 ? 0 : this.at + 1);
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.playing && this.go(this.at + 1), PACE_MS);
  }

  pause() {
    this.playing = false;
    clearTimeout(this.timer);
    this.controls();
  }

  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!this.root.isConnected || this.root.offsetParent === null) return;
    const target = event.composedPath()[0];
    if (target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable], [role=tab], [role=slider], [role=listbox]")) return;
    if (event.key === " " && target.closest?.("button, a, summary, input, [role=button]")) return;
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code);
    const does = { ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "last", " ": "play" }[event.key];
    if (does) this.press(does);
    else if (digit && this.data.blocked) this.answer(Number(digit[1]) - 1);
    else return;
    event.preventDefault();
  }

  controls() {
    if (!this.data) return;
    const { num } = this.data, at = this.at;
    this.slider.max = num - 1;
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", `step ${at + 1} of ${num}`);
    this.root.querySelector(".number").textContent = `${at + 1} of ${num}`;
    const off = { first: at === 0, back: at === 0, forward: at >= this.furthest, last: at >= this.furthest, play: this.data.blocked };
    for (const [name, disabled] of Object.entries(off)) {
      this.root.querySelector(`[data-go="${name}"]`).disabled = disabled;
    }
    const play = this.root.querySelector('[data-go="play"]');
    play.textContent = this.playing ? "⏸" : "▶";
    play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
  }

  draw() {
    const { lines, line, why, tables } = this.data;
    this.controls();
    this.root.dataset.at = this.data.at;
    this.root.querySelector(".why").textContent = why;
    this.root.querySelector(".code").replaceChildren(
      ...lines.map((text, i) => {
        const item = made("li", i === line ? "lit" : "", text);
        if (i === line) item.setAttribute("aria-current", "step");
        return item;
      }),
    );
    this.ask();
    this.root.querySelector(".tables").replaceChildren(...tables.map(tableOf));
    this.fit();
  }

  // What a step compares and the lines that it follows end where their place ends, and what the step
  // is about is in sight there.
  fit() {
    if (!this.scroller?.isConnected) {
      this.scroller = scrollerOf(this.root);
      if (this.scroller) this.watcher.observe(this.scroller);
    }
    const { scroller, body } = this, zoom = zoomOf(this.root);
    if (!scroller) return;
    const above = body.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
    const room = Math.floor((scroller.clientHeight - above) / zoom) - 4;
    body.style.maxHeight = room < LEAST_PX ? "" : `${room}px`;
    const lit = this.root.querySelector(".lit");
    if (lit) look(lit, this.root.querySelector(".code"));
    for (const figure of this.root.querySelectorAll("figure")) {
      const marked = figure.querySelector(".marked");
      if (marked) look(marked, figure);
    }
  }

  ask() {
    const { question, right } = this.data;
    const place = this.root.querySelector(".question");
    place.hidden = !question;
    if (!question) return place.replaceChildren();
    const open = !question.right.length;
    const buttons = question.choices.map((choice, i) => {
      const button = made("button", "", i < 9 && open ? `${i + 1}  ${choice}` : choice);
      button.type = "button";
      button.disabled = !open;
      if (question.right.includes(i)) button.classList.add("right");
      else if (i === question.given) button.classList.add("wrong");
      button.addEventListener("click", () => this.answer(i));
      return button;
    });
    const said = [];
    if (!open && question.given >= 0) {
      const good = question.right.includes(question.given);
      said.push(made("span", `said ${good ? "right" : "wrong"}`, good ? "Right." : "Not so."));
      if (question.equal) said.push(made("span", "", question.equal));
      said.push(made("span", "", right));
    }
    place.replaceChildren(made("span", "text", question.text), ...buttons, ...said);
  }
}

// Scrolls a part alone, and only where what is looked for is not in sight.
function look(wanted, part) {
  const zoom = zoomOf(part), box = part.getBoundingClientRect(), found = wanted.getBoundingClientRect();
  const head = part.querySelector("figcaption")?.getBoundingClientRect().height ?? 0;
  if (found.top >= box.top + head - 1 && found.bottom <= box.bottom + 1) return;
  part.scrollTop += ((found.top + found.bottom - head - box.top - box.bottom) / 2) / zoom;
}

function tableOf({ title, columns, rows, marked, guessed }) {
  const figure = made("figure"), table = made("table"), head = made("tr");
  for (const column of columns) {
    const cell = made("th", column.figures ? "figures" : "", column.name);
    cell.scope = "col";
    head.append(cell);
  }
  table.append(head);
  rows.forEach((cells, i) => {
    const classes = [marked.includes(i) && "marked", guessed.includes(i) && "guessed"];
    const row = made("tr", classes.filter(Boolean).join(" "));
    cells.forEach((text, c) => row.append(made("td", columns[c].figures ? "figures" : "", text)));
    table.append(row);
  });
  figure.append(made("figcaption", "", title), table);
  return figure;
}

export default function ({ data, parentElement, setStateValue }) {
  let player = alive.get(parentElement);
  if (!player || !player.root.isConnected) {
    player?.close();
    player = new Player(parentElement);
    alive.set(parentElement, player);
  }
  player.show(data, (told) => setStateValue("told", told));
  const generation = (player.generation = (player.generation ?? 0) + 1);
  return () => {
    if (player.generation !== generation) return;
    player.close();
    alive.delete(parentElement);
  };
}
