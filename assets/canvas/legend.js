// The legend under the device chips: what other colours of the cards mean, and the signs.

class Legend {
  constructor(place) {
    this.place = place;
    this.row = element("div", "keys");
    this.row.setAttribute("role", "group");
    this.row.setAttribute("aria-label", "Legend");
    this.shown = "";
  }

  // Made anew only where something changed, so that it can be read while repaints come.
  show(canvas) {
    const { model, theme } = canvas;
    const key = JSON.stringify([
      model.tones && { ...model.tones, codes: model.tones.codes.includes("."), bands: 0 },
      theme.dark,
      this.signs(model, theme),
    ]);
    if (key === this.shown) return;
    this.shown = key;
    const tones = model.tones ? this.ofTones(model.tones, theme) : [];
    const signs = element("span", "signs");
    for (const [sign, text, colour, help] of this.signs(model, theme)) {
      const mark = element("span", `mark ${sign}`);
      mark.style.color = colour;
      const made = element("span", "key");
      made.title = help;
      made.append(mark, text);
      signs.append(made);
    }
    this.row.replaceChildren(...tones, signs);
    const by = model.tones ? model.tones.title : "device";
    canvas.chrome.tellRests();
    canvas.chrome.root.setAttribute("aria-label", `Graph of the model, coloured by: ${by}`);
  }

  signs(model, theme) {
    const signs = [];
    if (model.devices.length > 1) {
      signs.push(["dashed", "between devices", theme.text, "Data that one device sends another"]);
    }
    if (/[12]/.test(model.marks)) {
      const help = "The chain of computing, sending and waiting that decides how long a step takes";
      signs.push(["diamond", "critical path", theme.critical, help]);
    }
    if (/[12]/.test(model.guessed)) {
      signs.push(["ring", "a guess", theme.guess, "Chosen by what looks best by itself, which may be wrong"]);
    }
    if (model.opacity) {
      signs.push(["faint", "fainter: less sure, or done with", theme.faint, "How likely the device was, or what the method has taken out"]);
    }
    if (model.queues.length) {
      const help = "Here the path goes on without data: what comes next waits for a device or link";
      signs.push(["dotted", "waits its turn", theme.critical, help]);
    }
    if (model.pins.some((pin) => pin > "0")) {
      const held = "Stays on its device, whoever moves the others; hollow: a part of the block does";
      signs.push(["pin", "pinned", theme.text, held]);
    }
    const help = "From a kilobyte to a gigabyte, by the logarithm";
    signs.push(["wedge", "wider: more bytes", theme.faint, help]);
    return signs;
  }

  ofTones(tones, theme) {
    const title = element("span", "title", tones.title);
    if (tones.ends) return [title, this.scale(tones, theme), ...this.nothing(tones, theme)];
    const entries = tones.keys.map(([label, , count], i) =>
      this.entry(label, String(count), toneColour(tones, theme, codeOf(i))),
    );
    return [title, ...entries, ...this.nothing(tones, theme)];
  }

  // From little to much, as one bar of steps with its ends written at it.
  scale(tones, theme) {
    const made = element("span", "key");
    const bar = element("span", "steps");
    tones.keys.forEach(([label, , count], i) => {
      const step = element("span", "step");
      step.style.background = toneColour(tones, theme, codeOf(i));
      step.title = `${label}: ${count} on the picture`;
      bar.append(step);
    });
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", `${tones.title}: from ${tones.ends[0]} to ${tones.ends[1]}`);
    made.append(element("span", "end", tones.ends[0]), bar, element("span", "end", tones.ends[1]));
    return made;
  }

  nothing(tones, theme) {
    return tones.note && tones.codes.includes(".") ? [this.entry(tones.note, "", theme.neutral)] : [];
  }

  entry(label, fact, colour) {
    const made = element("span", "key");
    const swatch = element("span", "dot");
    swatch.style.backgroundColor = colour;
    made.append(swatch, element("span", "label", label));
    if (fact) made.append(element("span", "fact", fact));
    return made;
  }
}

// What the tooltip of a node says beside its devices.
function toneLines(model, i) {
  if (model.awaited.has(i)) return [];
  const lines = model.sums[i] ? [`computes ${model.sums[i]} in all`] : [];
  const { tones } = model;
  if (!tones) return lines;
  if (tones.codes[i] === "*") return [...lines, ...bandLines(tones, tones.bands[i] ?? "")];
  const key = tones.keys[deviceAt(tones.codes[i])];
  if (key) lines.push(tones.ends ? `${tones.title}: ${key[0]}` : key[0]);
  else if (tones.note) lines.push(tones.note);
  return lines;
}

// The shares of a mixed block, as near as its bands tell them.
function bandLines(tones, bands) {
  return [...new Set(bands)].map((code) => {
    const share = percentText((bands.split(code).length - 1) / bands.length);
    const key = tones.keys[deviceAt(code)];
    return { colour: key?.[1] ?? "transparent", text: `about ${share}: ${key?.[0] ?? tones.note}` };
  });
}

function crossingLines(model, edge) {
  const [a, b] = [deviceAt(model.colours[edge.from]), deviceAt(model.colours[edge.to])];
  const crossing = crossingOf(model, edge);
  if (!crossing) return [];
  if (a < 0 || b < 0) return [crossing === 1 ? "a part of it changes device" : "all of it changes device"];
  return [`crosses from ${model.devices[a].label} to ${model.devices[b].label}`];
}
