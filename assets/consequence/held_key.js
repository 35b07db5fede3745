// The key of a device: tapped it moves at once; held it shows what would come of it, and moves when
// it is let go. Escape before that, or leaving the window, and nothing happens.

const HELD_MS = 180;

class HeldKey {
  constructor(ask, act) {
    this.ask = ask;
    this.act = act;
    this.device = -1;
    this.gone = () => this.drop();
    this.let = (event) => this.up(event);
  }

  get isDown() {
    return this.device >= 0;
  }

  // Whether the key was that of a device; one that follows another quickly does not undo it.
  down(event, device) {
    if (event.repeat) return;
    this.finish();
    [this.device, this.code] = [device, event.code];
    this.timer = setTimeout(() => this.ask(device), HELD_MS);
    window.addEventListener("keyup", this.let, true);
    window.addEventListener("blur", this.gone);
  }

  up(event) {
    if (event.code === this.code) this.finish();
  }

  // The move is made.
  finish() {
    const { device } = this;
    this.drop();
    if (device >= 0) this.act(device);
  }

  drop() {
    clearTimeout(this.timer);
    window.removeEventListener("keyup", this.let, true);
    window.removeEventListener("blur", this.gone);
    if (this.device >= 0) consequences.end();
    this.device = -1;
  }
}

// The number of the device whose key this is; undefined for every other key. The digit's place on
// the keyboard counts, so that Shift and other layouts do not matter.
function deviceOfKey(event) {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code) ?? /^([1-9])$/.exec(event.key);
  return digit ? Number(digit[1]) - 1 : undefined;
}
