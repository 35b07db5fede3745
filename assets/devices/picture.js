// A machine as a graph: hosts with their devices as cards, links that are alike as rails.
//
// Python says what belongs together; here it gets its place, for only the browser knows how wide
// the page is. Cards and rails can be clicked and reached with Tab.

const SIZES = [
  { most: 12, wide: 138, tall: 62, lines: 3 },
  { most: 40, wide: 100, tall: 46, lines: 2 },
  { most: Infinity, wide: 72, tall: 36, lines: 2 },
];
const GAP = 10, PAD = 14, TITLE = 22, RAIL = 26, TRUNK = 30, LEAST_WIDE = 280;
const alive = (globalThis.__placementMachine ??= new WeakMap());

class MachinePicture {
  constructor(parent) {
    this.root = parent.querySelector(".machine");
    this.frame = this.root.querySelector(".frame");
    this.outbox = new Outbox();
    this.watcher = new ResizeObserver(() => {
      if (this.frame.clientWidth !== this.width) this.draw();
    });
    this.watcher.observe(this.frame);
    this.root.addEventListener("click", (event) => this.pick(event));
    this.root.addEventListener("keydown", (event) => {
      // Streamlit has shortcuts of its own for plain letters.
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.pick(event);
    });
  }

  close() {
    this.watcher.disconnect();
    this.outbox.close();
  }

  show(data, send) {
    this.outbox.send = send;
    this.outbox.acknowledge(data.session, data.ack);
    this.data = data;
    this.root.querySelector(".help").textContent = data.help;
    this.draw();
  }

  pick(event) {
    const found = event.target.closest?.("[data-pick]");
    if (found) this.outbox.push({ kind: "pick", what: found.dataset.pick });
  }

  draw() {
    const width = this.frame.clientWidth;
    if (!this.data || width < 80) return;
    this.width = width;
    const focused = this.root.getRootNode().activeElement?.dataset?.pick;
    const { devices, hosts, between } = this.data;
    this.size = SIZES.find(({ most }) => devices.length <= most);
    const left = between.length ? TRUNK : 0;
    const room = Math.max(LEAST_WIDE, width - left - 2);
    const boxes = hosts.map((host) => this.measure(host, room));
    const svg = node("svg", { width: Math.max(width, LEAST_WIDE + left), role: "group", "aria-label": this.data.label });
    let top = 1;
    const rows = flowed(boxes, room);
    const branches = [];
    for (const row of rows) {
      const tall = Math.max(...row.map((box) => box.tall));
      let x = left + 1;
      const feet = [];
      for (const box of row) {
        svg.append(this.host(box, x, top));
        feet.push({ x: x + box.wide / 2, y: top + box.tall, host: box.host });
        x += box.wide + GAP;
      }
      top += tall;
      if (between.length) branches.push({ y: top + RAIL / 2 + 4, feet });
      top += between.length ? RAIL + 8 : GAP;
    }
    if (between.length) svg.append(this.between(between[0], branches));
    svg.setAttribute("height", top + 2);
    this.frame.replaceChildren(svg);
    if (focused) [...svg.querySelectorAll("[data-pick]")].find((e) => e.dataset.pick === focused)?.focus({ preventScroll: true });
  }

  // How a host is divided: lines of cards, and between them the rails, those that meet nowhere at
  // one height.
  measure(host, room) {
    const { wide, tall } = this.size;
    const inside = room - 2 * PAD;
    const fit = Math.max(1, Math.floor((inside + GAP) / (wide + GAP)));
    const most = Math.max(host.processors.length, host.accelerators.length, 1);
    // Many hosts stand beside each other better when none takes a whole line.
    const crowd = this.data.hosts.length > 2 ? Math.min(fit, 4) : fit;
    // Lines of about the same length.
    const columns = Math.ceil(most / Math.ceil(most / crowd));
    const grid = (members) => ({ members, lines: Math.ceil(members.length / columns) });
    const named = (side) => layered(host.rails.filter((rail) => rail.side === side));
    const rails = { host: named("host"), cross: named("cross"), accelerators: named("accelerators") };
    const processors = grid(host.processors), accelerators = grid(host.accelerators);
    const longest = Math.max(0, ...host.rails.map((rail) => rail.text.length * 6.4 + 16));
    const box = {
      host, columns, rails, processors, accelerators,
      wide: Math.min(room, Math.max(columns * (wide + GAP) - GAP, longest) + 2 * PAD),
    };
    const lines = processors.lines + accelerators.lines;
    const levels = rails.host.length + rails.cross.length + rails.accelerators.length;
    box.tall = (host.name ? TITLE : PAD) + lines * (tall + GAP) + levels * RAIL + PAD - (levels ? 0 : GAP) + 2;
    return box;
  }

  host(box, x, y) {
    const { wide, tall } = this.size, { host, rails } = box;
    const group = node("g", { class: "host" });
    group.append(node("rect", { x, y, width: box.wide, height: box.tall, rx: 10, class: "case" }));
    if (host.name) group.append(node("text", { x: x + PAD, y: y + 16, class: "title" }, host.name));
    const at = new Map();
    let top = y + (host.name ? TITLE : PAD);
    const inner = box.wide - 2 * PAD;
    const place = ({ members, lines }) => {
      const used = Math.min(members.length, box.columns) * (wide + GAP) - GAP;
      const start = x + PAD + Math.max(0, (inner - used) / 2);
      members.forEach((number, i) => {
        at.set(number, {
          x: start + (i % box.columns) * (wide + GAP), y: top + Math.floor(i / box.columns) * (tall + GAP),
          line: Math.floor(i / box.columns), lines,
        });
      });
      top += lines * (tall + GAP);
    };
    const levels = { host: top };
    top += rails.host.length * RAIL;
    place(box.processors);
    levels.cross = top;
    top += rails.cross.length * RAIL;
    place(box.accelerators);
    levels.accelerators = top;
    const lines = node("g", { class: "rails" });
    for (const side of ["host", "cross", "accelerators"]) {
      rails[side].forEach((level, i) => {
        for (const rail of level) lines.append(this.rail(rail, at, levels[side] + i * RAIL + RAIL / 2 + 3, x + PAD));
      });
    }
    const cards = node("g", { class: "cards" });
    for (const [number, spot] of at) cards.append(this.card(number, spot));
    group.append(lines, cards);
    return group;
  }

  // A line with a foot to each device; where cards stand in several lines, through the gaps.
  rail(rail, at, y, least) {
    const { wide, tall } = this.size;
    const feet = rail.ends.map((end) => at.get(end)).filter(Boolean);
    const shift = { host: 0, cross: -7, accelerators: 7 }[rail.side] + rail.level * 9;
    const points = feet.map((spot) => {
      const last = y > spot.y ? spot.line === spot.lines - 1 : spot.line === 0;
      const x = last ? spot.x + wide / 2 + shift : spot.x - GAP / 2 + shift / 3.5;
      return { x, from: last ? (y > spot.y ? spot.y + tall : spot.y) : spot.y + tall / 2, to: last ? null : spot.x };
    });
    const xs = points.map((p) => p.x);
    const start = Math.min(...xs), needed = rail.text.length * 6.4 + 8;
    const end = Math.max(...xs, Math.min(start + 40, start + needed));
    const group = this.pickable(rail.key, "rail", this.told(rail));
    group.append(node("title", {}, this.told(rail)));
    for (const p of points) {
      const path = p.to === null ? `M${p.x} ${p.from}V${y}` : `M${p.to} ${p.from}H${p.x}V${y}`;
      group.append(node("path", { d: path, class: "foot" }));
    }
    const line = `M${start} ${y}H${end}`;
    group.append(
      node("path", { d: line, class: "line", "stroke-width": rail.width }),
      node("path", { d: line, class: "target" }),
      node("text", { x: Math.max(least, start) + 8, y: y - rail.width / 2 - 3, class: "speed" }, rail.text),
    );
    return group;
  }

  between(rail, branches) {
    const group = this.pickable(rail.key, "rail", this.told(rail));
    group.append(node("title", {}, this.told(rail)));
    const x = TRUNK / 2, first = branches[0].y, last = branches[branches.length - 1].y;
    let path = `M${x} ${first}V${last}`;
    for (const { y, feet } of branches) {
      const met = feet.filter(({ host }) => [...host.processors, ...host.accelerators].some((i) => rail.ends.includes(i)));
      if (!met.length) continue;
      path += `M${x} ${y}H${Math.max(...met.map((foot) => foot.x))}`;
      for (const foot of met) {
        group.append(node("path", { d: `M${foot.x} ${foot.y}V${y}`, class: "foot" }));
      }
    }
    group.append(
      node("path", { d: path, class: "line", "stroke-width": rail.width }),
      node("path", { d: path, class: "target" }),
      node("text", { x: x + 10, y: first - rail.width / 2 - 4, class: "speed" }, `Between hosts: ${rail.text}`),
    );
    return group;
  }

  told(rail) {
    const names = rail.ends.map((end) => this.data.devices[end].name);
    const few = names.length > 6 ? `${names.slice(0, 5).join(", ")} and ${names.length - 5} more` : names.join(", ");
    return `${rail.num === 1 ? "1 link" : `${rail.num} links`} between ${few}: ${rail.text}`;
  }

  card(number, { x, y }) {
    const device = this.data.devices[number], { wide, tall, lines } = this.size;
    const said = [device.name, device.about, device.memory, device.rate].filter(Boolean).join(", ");
    const group = this.pickable(device.name, "card", said);
    group.append(node("title", {}, said));
    group.append(
      node("rect", { x, y, width: wide, height: tall, rx: 6, class: "body" }),
      node("path", { d: `M${x + 6} ${y}H${x + 8}V${y + tall}H${x + 6}a6 6 0 0 1 -6 -6V${y + 6}a6 6 0 0 1 6 -6Z`, fill: device.colour, class: "stripe" }),
    );
    const room = Math.floor((wide - 18) / 6.1);
    const short = (text) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
    const told = [device.name, device.memory, device.rate].filter(Boolean).slice(0, lines);
    told.forEach((line, i) => {
      const at = y + tall / 2 + (i - (told.length - 1) / 2) * 16 + 4.5;
      group.append(node("text", { x: x + 14, y: at, class: i ? "figure" : "name" }, short(line)));
    });
    return group;
  }

  pickable(what, kind, said) {
    const chosen = this.data.selected === what;
    return node("g", {
      class: chosen ? `${kind} chosen` : kind, "data-pick": what, tabindex: 0, role: "button",
      "aria-label": said, "aria-pressed": String(chosen),
    });
  }
}

// Boxes in lines from left to right.
function flowed(boxes, room) {
  const rows = [];
  let used = Infinity;
  for (const box of boxes) {
    if (used + GAP + box.wide > room) {
      rows.push([]);
      used = -GAP;
    }
    rows[rows.length - 1].push(box);
    used += GAP + box.wide;
  }
  return rows;
}

// Rails by height: one whose devices lie within those of no other shares it.
function layered(rails) {
  const levels = [];
  for (const rail of rails) {
    const [from, to] = [Math.min(...rail.ends), Math.max(...rail.ends)];
    let level = levels.findIndex((others) => others.every((o) => o.to < from || o.from > to));
    if (level < 0) level = levels.push([]) - 1;
    levels[level].push({ ...rail, from, to, level });
  }
  return levels;
}

export default function ({ data, parentElement, setStateValue }) {
  let picture = alive.get(parentElement);
  if (!picture || !picture.root.isConnected) {
    picture?.close();
    picture = new MachinePicture(parentElement);
    alive.set(parentElement, picture);
  }
  picture.show(data, (picks) => setStateValue("picks", picks));
  const generation = (picture.generation = (picture.generation ?? 0) + 1);
  return () => {
    if (picture.generation !== generation) return;
    picture.close();
    alive.delete(parentElement);
  };
}
