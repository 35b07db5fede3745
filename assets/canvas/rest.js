// A row that may have no room for all that stands in it: how much is out of sight, on a button that
// opens the rest over what is below, so that nothing moves.

class Rest {
  // `row` holds the things, which `selector` finds; `place` is what row and button stand in.
  constructor(place, row, selector, noun) {
    this.place = place;
    this.row = row;
    this.selector = selector;
    this.noun = noun;
    this.button = button("", "", () => this.open(!this.isOpen));
    this.button.classList.add("more");
    this.button.hidden = true;
    place.append(row, this.button);
    this.count = guarded(() => this.tell());
    row.addEventListener("scroll", this.count);
    place.addEventListener("keydown", guarded((event) => this.key(event)));
    this.sizes = new ResizeObserver(this.count);
    this.sizes.observe(row);
  }

  get isOpen() {
    return this.place.classList.contains("open");
  }

  open(on) {
    if (on === this.isOpen || (on && this.button.hidden)) return;
    this.place.classList.toggle("open", on);
    if (!on) this.row.scrollTo(0, 0);
    this.tell();
  }

  key(event) {
    if (event.key !== "Escape" || !this.isOpen) return;
    event.stopPropagation();
    this.open(false);
    if (!this.button.hidden) this.button.focus();
  }

  // What is out of sight in part is cut, so it counts.
  outOfSight() {
    // In a page that scrolls it has all the lines that it needs, and no box of its own.
    if (!this.row.clientWidth) return 0;
    const { left, right } = this.row.getBoundingClientRect();
    return [...this.row.querySelectorAll(this.selector)].filter((thing) => {
      const box = thing.getBoundingClientRect();
      return box.left < left - 1 || box.right > right + 1;
    }).length;
  }

  tell() {
    const number = this.isOpen ? 0 : this.outOfSight();
    this.button.hidden = !number && !this.isOpen;
    this.row.classList.toggle("cut", number > 0);
    setText(this.button, this.isOpen ? "×" : `+${number}`);
    const title = this.isOpen ? "Show one line of them (Esc)" : `Show the ${this.noun} that have no room here: ${number} more`;
    this.button.title = title;
    this.button.setAttribute("aria-label", title);
    this.button.setAttribute("aria-expanded", String(this.isOpen));
  }

  close() {
    this.sizes.disconnect();
  }
}
