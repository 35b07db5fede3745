// The search bar over the drawing. Python searches, because most ops are inside closed blocks.

const FIND_BY = [
  ["name", "Name", "Part of an op's or a block's name"],
  ["type", "Op type", "An op type, for example Conv"],
  ["regex", "Regex", "A regular expression, for example block[0-3]/conv"],
];
const TYPING_MS = 250;

class Finder {
  constructor(canvas) {
    this.canvas = canvas;
    this.bar = element("div", "find");
    this.bar.setAttribute("role", "search");
    this.bar.hidden = true;
    this.by = element("select", "by");
    this.by.setAttribute("aria-label", "Search by");
    for (const [value, label] of FIND_BY) {
      const option = element("option", "", label);
      option.value = value;
      this.by.append(option);
    }
    this.text = element("input", "text");
    this.text.type = "search";
    this.text.maxLength = 200;
    this.text.spellcheck = false;
    this.text.setAttribute("aria-label", "Search ops");
    this.count = element("span", "count");
    this.previous = button("↑", "Previous match (Shift+Enter)", () => this.go(-1));
    this.next = button("↓", "Next match (Enter)", () => this.go(1));
    this.all = button("Select all", "Select all matches (Ctrl+Enter)", () => this.selectAll());
    const close = button("✕", "Close the search (Esc)", () => this.close());
    this.bar.append(this.by, this.text, this.count, this.previous, this.next, this.all, close);
    canvas.chrome.stage.append(this.bar);
    this.text.addEventListener("input", guarded(() => this.typed()));
    this.by.addEventListener("change", guarded(() => this.typed(0)));
    this.bar.addEventListener("keydown", guarded((event) => this.key(event)));
    this.at = -1;
    this.total = 0;
    this.explain();
  }

  open() {
    this.bar.hidden = false;
    this.text.focus();
    this.text.select();
  }

  close() {
    clearTimeout(this.timer);
    this.bar.hidden = true;
    this.canvas.chrome.root.focus({ preventScroll: true });
  }

  explain() {
    const [, , hint] = FIND_BY.find(([value]) => value === this.by.value);
    this.text.placeholder = hint;
    this.text.title = hint;
  }

  // Counts the matches after a pause in typing; nothing is selected yet.
  typed(pause = TYPING_MS) {
    clearTimeout(this.timer);
    this.explain();
    this.at = -1;
    this.total = 0;
    this.tell(this.text.value.trim() ? "…" : "");
    this.timer = setTimeout(guarded(() => this.ask(-1)), pause);
  }

  ask(at, all = false) {
    const text = this.text.value.trim();
    if (!text) return;
    clearTimeout(this.timer);
    const { canvas } = this;
    const n = canvas.send({ kind: "search", text, by: this.by.value, at, all });
    if (at >= 0) canvas.expectView(n);
  }

  go(step) {
    const next = this.at < 0 ? (step > 0 ? 0 : this.total - 1) : this.at + step;
    this.ask(this.total ? (next + this.total) % this.total : 0);
  }

  selectAll() {
    this.ask(-1, true);
  }

  key(event) {
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.text) {
      if (event.ctrlKey || event.metaKey) this.selectAll();
      else this.go(event.shiftKey ? -1 : 1);
    } else return;
    event.preventDefault();
  }

  // Python's answer, where it is to what stands in the field.
  show(answer) {
    if (!answer || answer.text !== this.text.value.trim() || answer.by !== this.by.value) return;
    const { total, at, note } = answer;
    const news = total !== this.total || at !== this.at || note;
    this.total = total;
    this.at = at;
    this.count.classList.toggle("wrong", Boolean(note));
    const found = `${total} ${total === 1 ? "op" : "ops"}`;
    const text = note || (at < 0 ? found : `${at + 1} of ${total}`);
    if (this.count.textContent !== text) this.tell(text);
    if (news) this.canvas.chrome.say(note || (at < 0 ? `${found} found` : `Match ${text}`));
  }

  tell(text) {
    this.count.textContent = text;
    this.count.title = text;
  }
}
