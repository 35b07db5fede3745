// The legend under the device chips: what other colours of the cards mean, and the signs.

class Legend {
  constructor(row) {
    this.row = row;
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
    for (const [sign, text, colour] of this.signs(model, theme)) {
      const mark = element("span", "mark", sign);
      mark.style.color = colour;
      signs.append(mark, text);
    }
    this.row.replaceChildren(...tones, signs);
  }

  signs(model, theme) {
    const signs = [];
    if (model.devices.length > 1) signs.push(["┅", "between devices", theme.text]);
    if (/[12]/.test(model.marks)) signs.push(["◆", "critical path", theme.critical]);
    return signs;
  }

  ofTones(tones, theme) {
    const title = element("span", "title", tones.title);
    if (tones.ends) return [title, this.scale(tones, theme), ...this.nothing(tones, theme)];
    const entries = tones.keys.map(([label, , count], i) =>
      this.entry(label, String(count), toneColour(tones, theme, CODE[i])),
    );
    return [title, ...entries, ...this.nothing(tones, theme)];
  }

  // From little to much, as one bar of steps with its ends written at it.
  scale(tones, theme) {
    const made = element("span", "key");
    const bar = element("span", "steps");
    tones.keys.forEach(([label, , count], i) => {
      const step = element("span", "step");
      step.style.background = toneColour(tones, theme, CODE[i]);
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
