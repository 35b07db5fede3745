// What a move would do, beside the device that it leads to, before anybody makes it.

const REST_MS = 80;

class Forecast {
  constructor(canvas) {
    this.canvas = canvas;
    this.device = -1;
    this.box = element("div", "forecast");
    this.box.hidden = true;
    canvas.chrome.root.append(this.box);
    this.heard = guarded(({ detail }) => this.show(detail));
    window.addEventListener("placement-consequence", this.heard);
  }

  // Nothing is asked where nothing could be done.
  ask(device) {
    const { canvas } = this;
    const found = canvas.targets();
    if (!found || canvas.readOnly || !canvas.data.asks || !canvas.model.devices[device]) {
      this.end();
      return;
    }
    this.device = device;
    this.mark();
    consequences.ask({ device, nodes: found.nodes });
  }

  end() {
    if (this.device < 0) return;
    this.device = -1;
    this.mark();
    consequences.end();
  }

  mark() {
    const { chips } = this.canvas.chrome;
    [...chips.children].forEach((chip, i) => chip.classList.toggle("target", i === this.device));
  }

  show(answer) {
    if (!answer || this.device < 0) {
      this.box.hidden = true;
      return;
    }
    const { about, text, way, tie, note } = answer;
    const sign = { "-1": "▼ ", 1: "▲ " }[way] ?? "";
    const side = tie ? "" : { "-1": "faster", 1: "slower" }[way] ?? "";
    const first = element("div", `score ${side}`, sign + (text || note));
    this.box.replaceChildren(first, element("div", "about", about));
    if (text && note) this.box.append(element("div", "against", note));
    this.box.hidden = false;
    const frame = this.canvas.chrome.root.getBoundingClientRect();
    const found = this.canvas.chrome.chips.children[this.device];
    found.scrollIntoView({ block: "nearest", inline: "nearest" });
    const chip = found.getBoundingClientRect();
    const left = Math.min(chip.left - frame.left, frame.width - this.box.offsetWidth - 8);
    this.box.style.left = `${Math.max(6, left)}px`;
    this.box.style.top = `${chip.bottom - frame.top + 6}px`;
    this.canvas.chrome.say([about, text, note].filter(Boolean).join(": "));
  }

  close() {
    this.end();
    window.removeEventListener("placement-consequence", this.heard);
  }
}

// What stands for a device says what would come of choosing it, while it is focused or the pointer
// rests on it; who only passes by asks nothing.
function foretelling(item, canvas, device) {
  const { forecast } = canvas;
  let timer = 0;
  const ask = guarded(() => canvas.gestures.active || forecast.ask(device));
  const end = guarded(() => {
    clearTimeout(timer);
    if (!canvas.gestures.active && forecast.device === device) forecast.end();
  });
  item.addEventListener("focus", ask);
  item.addEventListener("pointerenter", () => (timer = setTimeout(ask, REST_MS)));
  for (const type of ["pointerleave", "blur", "click"]) item.addEventListener(type, end);
}
