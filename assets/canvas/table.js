// The table of ops: plain HTML that a reader can read, ticks that are the selection of the picture.

class OpTable {
  constructor(parent) {
    this.parent = parent;
    this.generation = 0;
    this.outbox = new Outbox();
    this.chosen = new Set();
    this.last = -1;
    this.shownRows = "";
    this.shownHeadings = "";
    this.root = element("div", "table");
    this.frame = element("div", "frame");
    this.frame.tabIndex = 0;
    this.frame.setAttribute("role", "region");
    this.table = element("table");
    this.caption = element("caption");
    this.head = element("thead");
    this.body = element("tbody");
    this.table.append(this.caption, this.head, this.body);
    this.frame.append(this.table);
    this.root.append(this.frame, this.pager());
    parent.append(this.root);
    // Streamlit's own keys (r, c) must not fire here.
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Tab") event.stopPropagation();
    });
  }

  update(args) {
    const { data } = args;
    if (!data) return;
    this.data = data;
    this.outbox.send = (value) => args.setStateValue("ops", value);
    this.outbox.acknowledge(data.session, data.ack);
    const before = [...this.chosen].join();
    this.chosen = new Set(data.rows.map(([op]) => op).filter((_, i) => data.chosen[i] === "1"));
    for (const entry of this.outbox.queue) this.applyPick(entry);
    this.caption.textContent = data.caption;
    this.frame.setAttribute("aria-label", data.caption);
    this.showHeadings();
    this.showRows();
    this.showTicks();
    this.showPager();
    if ([...this.chosen].join() !== before) this.bringIntoView();
  }

  applyPick(entry) {
    if (entry.kind !== "pick") return;
    if (entry.only) this.chosen.clear();
    entry.left.forEach((op) => this.chosen.delete(op));
    entry.chosen.forEach((op) => this.chosen.add(op));
  }

  pager() {
    const row = element("div", "pager");
    const turn = (by) => () => this.outbox.push({ kind: "page", page: this.data.page + by });
    this.back = button("‹", "Page before", turn(-1));
    this.next = button("›", "Next page", turn(1));
    this.where = element("span", "where");
    this.where.setAttribute("aria-live", "polite");
    row.append(this.back, this.where, this.next);
    return row;
  }

  showPager() {
    const { page, pages } = this.data;
    this.where.textContent = `Page ${page + 1} of ${pages}`;
    this.back.disabled = page === 0;
    this.next.disabled = page + 1 >= pages;
    this.where.parentElement.hidden = pages < 2;
  }

  showHeadings() {
    const { headings, sort } = this.data;
    const key = JSON.stringify(headings);
    if (key !== this.shownHeadings) {
      this.shownHeadings = key;
      const row = element("tr");
      this.all = this.box("Select all rows of this page", () => this.tickAll());
      const corner = element("td", "tick");
      corner.append(this.all);
      row.append(corner, ...headings.map((heading) => this.heading(heading)));
      this.head.replaceChildren(row);
    }
    [...this.head.querySelectorAll("th")].forEach((cell, i) => {
      const sorted = headings[i].by === sort.by;
      const way = sort.descending ? "descending" : "ascending";
      cell.setAttribute("aria-sort", sorted ? way : "none");
      cell.querySelector(".way").textContent = sorted ? (sort.descending ? "▾" : "▴") : "";
    });
  }

  heading({ by, label, help, is_number: isNumber }) {
    const cell = element("th", isNumber ? "number" : "");
    cell.scope = "col";
    const sorter = element("button", "sorter", label);
    sorter.type = "button";
    sorter.title = `${help ? `${help} ` : ""}Click to sort.`;
    sorter.append(element("span", "way"));
    sorter.addEventListener("click", () => this.outbox.push({ kind: "sort", by }));
    cell.append(sorter);
    return cell;
  }

  showRows() {
    const { rows, devices, hatched, headings } = this.data;
    const key = JSON.stringify([rows, devices, hatched]);
    if (key === this.shownRows) return;
    this.shownRows = key;
    const focused = this.root.getRootNode().activeElement?.dataset?.op;
    this.body.replaceChildren(...rows.map((row, i) => this.row(row, i, headings)));
    if (focused) this.body.querySelector(`input[data-op="${focused}"]`)?.focus();
    if (!rows.length) {
      const empty = element("td", "empty", "No op fits.");
      empty.colSpan = headings.length + 1;
      this.body.append(element("tr"));
      this.body.lastChild.append(empty);
    }
  }

  row([op, ...values], i, headings) {
    const made = element("tr");
    made.dataset.op = String(op);
    const tick = element("td", "tick");
    const box = this.box(`Select ${values[0]}`, () => this.tick([op], box.checked));
    box.dataset.op = String(op);
    tick.append(box);
    made.append(tick, ...values.map((value, k) => this.cell(value, headings[k])));
    // Shift would select the text in between too.
    made.addEventListener("mousedown", (event) => event.shiftKey && event.preventDefault());
    made.addEventListener("click", (event) => {
      if (event.target === box) this.last = i;
      else this.clicked(event, op, i);
    });
    return made;
  }

  cell(value, { by, label, is_number: isNumber }) {
    if (by === "name") {
      const name = element("th", "name", value);
      name.scope = "row";
      return name;
    }
    const made = element("td", isNumber ? "number" : by);
    if (by === "device") {
      const { label: device, colour, pattern } = this.data.devices[value];
      const swatch = element("span", "dot");
      paintSwatch(swatch, colour, this.data.hatched ? pattern : "");
      made.append(swatch, device);
    } else if (typeof value === "boolean") {
      made.textContent = value ? "✓" : "";
      if (value) made.setAttribute("aria-label", label);
    } else made.textContent = value;
    return made;
  }

  box(label, action) {
    const made = element("input");
    made.type = "checkbox";
    made.setAttribute("aria-label", label);
    made.addEventListener("change", guarded(action));
    return made;
  }

  // As in the picture: a click takes one, with Ctrl one more, with Shift all in between.
  clicked(event, op, i) {
    const marksText = getSelection()?.toString() && !event.shiftKey;
    if (marksText) return;
    if (event.shiftKey && this.last >= 0) {
      const [from, to] = [Math.min(i, this.last), Math.max(i, this.last)];
      this.tick(this.data.rows.slice(from, to + 1).map((row) => row[0]), true);
    } else if (event.ctrlKey || event.metaKey) this.tick([op], !this.chosen.has(op));
    else this.pick([op], [], true);
    this.last = i;
  }

  tick(ops, on) {
    this.pick(on ? ops : [], on ? [] : ops, false);
  }

  tickAll() {
    this.tick(
      this.data.rows.map((row) => row[0]),
      this.all.checked,
    );
  }

  pick(chosen, left, only) {
    const entry = { kind: "pick", chosen, left, only, graph: this.data.graph };
    this.applyPick(entry);
    this.showTicks();
    this.outbox.push(entry);
  }

  showTicks() {
    for (const row of this.body.children) {
      const on = this.chosen.has(Number(row.dataset.op));
      row.classList.toggle("chosen", on);
      const box = row.querySelector("input");
      if (box) box.checked = on;
    }
    const here = this.data.rows.filter(([op]) => this.chosen.has(op)).length;
    this.all.checked = here > 0 && here === this.data.rows.length;
    this.all.indeterminate = here > 0 && !this.all.checked;
  }

  // Only within the table: the page stays where it is.
  bringIntoView() {
    const row = this.body.querySelector("tr.chosen");
    if (!row) return;
    const [top, room] = [row.offsetTop - this.head.offsetHeight, this.frame.clientHeight];
    const seen = this.frame.scrollTop;
    const low = row.offsetTop + row.offsetHeight;
    if (top < seen || low > seen + room) this.frame.scrollTop = Math.max(0, top - room / 3);
  }

  destroy() {
    this.outbox.close();
    this.root.remove();
  }
}

const tables = new WeakMap();

home.table = guarded((args) => {
  let table = tables.get(args.parentElement);
  if (!table) {
    table = new OpTable(args.parentElement);
    tables.set(args.parentElement, table);
  }
  table.generation += 1;
  const { generation } = table;
  guarded(() => table.update(args))();
  return () => {
    setTimeout(
      guarded(() => {
        if (table.generation !== generation) return;
        tables.delete(args.parentElement);
        table.destroy();
      }),
      60,
    );
  };
});
