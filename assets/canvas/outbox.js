// Edits on their way to Python, sent as one state value.
//
// One-shot triggers of one name overtake each other when keys are hit quickly. The queue goes as a
// whole instead; Python applies what is newer than its last number and echoes that number, and one
// batch is under way at a time.

const RESEND_MS = 3000;
const MAX_RESENDS = 5;

class Outbox {
  constructor() {
    this.queue = [];
    this.last = 0;
    this.inFlight = 0;
    this.timer = 0;
    this.resends = 0;
    this.session = null;
    this.send = () => {};
  }

  push(entry) {
    const tail = this.queue[this.queue.length - 1];
    const n = Math.max(Date.now(), this.last + 1);
    this.last = n;
    // A selection that has not left yet gives way to the newer one.
    const replaces = entry.kind === "select" && entry.how === "set" && tail?.kind === "select";
    if (replaces && tail.n > this.inFlight) {
      this.queue.pop();
    }
    this.queue.push({ n, ...entry });
    this.resends = 0;
    if (!this.inFlight) this.flush();
    return n;
  }

  flush() {
    clearTimeout(this.timer);
    if (!this.queue.length) return;
    this.inFlight = this.last;
    this.send({ session: this.session, queue: this.queue.slice() });
    this.timer = setTimeout(() => {
      if (!this.inFlight || this.resends >= MAX_RESENDS) return;
      this.resends += 1;
      this.flush();
    }, RESEND_MS);
  }

  // The first session that this canvas meets: what was done before is for it.
  greet(session) {
    this.session = session;
    this.inFlight = 0;
    clearTimeout(this.timer);
  }

  // A new session nonce means that Python has forgotten everything: so do we.
  acknowledge(session, ack) {
    if (session !== this.session) {
      this.session = session;
      this.queue = [];
      this.inFlight = 0;
    }
    this.last = Math.max(this.last, ack);
    this.queue = this.queue.filter((entry) => entry.n > ack);
    if (this.inFlight && ack >= this.inFlight) {
      this.inFlight = 0;
      this.resends = 0;
      clearTimeout(this.timer);
      if (this.queue.length) this.flush();
    } else if (!this.queue.length) {
      this.inFlight = 0;
      clearTimeout(this.timer);
    }
  }

  close() {
    clearTimeout(this.timer);
  }
}
