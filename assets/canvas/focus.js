// The focus ring: which node the keyboard is at, and what a screen reader says of it.

Object.assign(Canvas.prototype, {
  focusOn(i) {
    const { model } = this;
    this.ring = model.nodes[i].id;
    this.ringShown = true;
    this.bringIntoView(i);
    this.repaint();
    this.chrome.say(spoken(model, i));
  },

  // The node in the ring has become a frame, or went into a closed block: the ring goes along.
  ringAfterView() {
    const { model, toggled } = this;
    if (!this.ringShown || !toggled || model.index.has(this.ring)) return;
    const inside = model.inside.get(toggled) ?? [];
    const next = model.index.get(toggled) ?? inside.toSorted((a, b) => above(model, a, b))[0];
    if (next === undefined) return;
    this.ring = model.nodes[next].id;
    const what = model.boxIndex.has(toggled) ? "Opened" : "Closed";
    this.chrome.say(`${what}; ${spoken(model, next)}`);
  },

  // Space: select what is in the ring, or add it to the selection and take it away.
  chooseRing(add) {
    const { model } = this;
    if (!model.index.has(this.ring)) return;
    this.ringShown = true;
    this.select([this.ring], add ? "toggle" : "set");
    this.repaint();
  },

  // Escape ends what is under way, else it clears the selection, else the ring.
  escape() {
    const { chrome } = this;
    if (chrome.closeRests()) return;
    if (this.gestures.active) this.gestures.finish();
    else if (!chrome.laying.hidden) this.cancelLayout();
    else if (!this.finder.bar.hidden) this.finder.close();
    else if (this.model.hasSelection()) this.select([]);
    else {
      this.ringShown = false;
      this.setLasso(false);
      this.repaint();
    }
  },
});

// Top first, and of two at one height the left one.
function above(model, a, b) {
  return model.nodes[a].y - model.nodes[b].y || model.nodes[a].x - model.nodes[b].x;
}

// A node in words: what it is, where it is placed, its states, and where the arrow keys lead.
function spoken(model, i) {
  const node = model.nodes[i];
  const parts = [node.closed ? `Closed block ${node.label}` : node.label, node.sub];
  const mix = model.mixOf(i);
  const place = (device) => (device < 0 ? "no device" : model.devices[device]?.label ?? "?");
  if (mix.length === 1) parts.push(`on ${place(mix[0][0])}`);
  else parts.push(mix.map(([device, ops]) => `${ops} on ${place(device)}`).join(", "));
  parts.push({ 0: "not selected", 1: "partly selected", 2: "selected" }[model.selected[i]]);
  if (model.pins[i] > "0") parts.push(model.pins[i] === "2" ? "pinned" : "partly pinned");
  if (model.marks[i] > "0") parts.push("on the critical path");
  const before = model.edges.filter((edge) => edge.to === i).length;
  const after = model.edges.filter((edge) => edge.from === i).length;
  parts.push(`${before} before it, ${after} after it`);
  return parts.filter(Boolean).join("; ");
}
