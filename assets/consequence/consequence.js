// What a move would do, asked of Python while it is only hovered over, held or dragged.
//
// One for all pictures of a page, whichever script is there first. The newest question wins: older
// ones are called off, and their answers dropped. What is asked again of the same placement is
// known already. Whoever draws answers listens to "placement-consequence".

const MOST_KNOWN = 200;

class Consequences {
  constructor() {
    this.address = "";
    this.session = "";
    this.of = "";
    this.open = null;
    this.shown = null;
    this.n = 0;
    this.known = new Map();
    this.call = null;
  }

  // Python's word on what is drawn; about another placement everything is asked anew.
  about({ address, of }, session) {
    this.address = address;
    this.session = session;
    if (of === this.of) return;
    this.of = of;
    this.known.clear();
    if (this.open) this.ask(this.open);
  }

  // A question is {device, nodes} or {device, bar}; the same one is asked once.
  ask(question) {
    const key = JSON.stringify(question);
    if (this.key === key && this.askedOf === this.of) return;
    this.call?.abort();
    [this.open, this.key, this.askedOf] = [question, key, this.of];
    performance.mark("placement-asked");
    const known = this.known.get(key);
    if (known) {
      this.tell(known);
      return;
    }
    this.tell(null);
    this.fetch(question, key);
  }

  async fetch(question, key) {
    const call = (this.call = new AbortController());
    this.n = Math.max(this.n + 1, Date.now());
    try {
      const reply = await fetch(this.address, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ session: this.session, n: this.n, ...question }),
        signal: call.signal,
      });
      const answer = reply.status === 200 ? await reply.json() : null;
      if (!answer || this.call !== call || answer.of !== this.of) return;
      // What is selected may be another thing by then.
      if (question.nodes || (question.bar && !question.bar.all)) {
        if (this.known.size >= MOST_KNOWN) this.known.clear();
        this.known.set(key, answer);
      }
      this.tell(answer);
    } catch (error) {
      // Without an answer nothing is foretold; the edit itself goes another way.
      if (error.name !== "AbortError") console.warn("consequence:", error);
    }
  }

  end() {
    if (!this.open) return;
    this.call?.abort();
    this.call = this.open = null;
    this.key = "";
    this.tell(null);
  }

  tell(answer) {
    if (!answer && !this.shown) return;
    this.shown = answer;
    window.dispatchEvent(new CustomEvent("placement-consequence", { detail: answer }));
  }
}

const consequences = (globalThis.__placementConsequences ??= new Consequences());
