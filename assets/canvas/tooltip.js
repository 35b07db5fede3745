// The tooltip: plain text only, whatever the model file says.

class Tooltip {
  constructor(stage) {
    this.stage = stage;
    this.box = element("div", "tooltip");
    this.box.hidden = true;
    stage.append(this.box);
  }

  show(lines, x, y) {
    this.box.replaceChildren(
      ...lines.map((line, i) => {
        const row = element("div", i ? "line" : "line first");
        if (line.colour) {
          const dot = element("span", "dot");
          dot.style.background = line.colour;
          row.append(dot);
        }
        row.append(line.text ?? line);
        return row;
      }),
    );
    this.box.hidden = false;
    const { clientWidth, clientHeight } = this.stage;
    const { offsetWidth, offsetHeight } = this.box;
    const left = x + 16 + offsetWidth > clientWidth ? x - offsetWidth - 12 : x + 16;
    const top = Math.min(y + 14, clientHeight - offsetHeight - 4);
    this.box.style.left = `${Math.max(4, left)}px`;
    this.box.style.top = `${Math.max(4, top)}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}

function mixLines(model, mix) {
  const total = mix.reduce((sum, [, ops]) => sum + ops, 0);
  return mix.map(([device, ops]) => ({
    colour: device < 0 ? "transparent" : deviceColour(model.devices, device),
    text:
      (device < 0 ? "not placed" : model.devices[device]?.label ?? "?") +
      (total > 1 ? `: ${ops} of ${total} ops` : ""),
  }));
}

function nodeLines(model, i) {
  const lines = [...model.nodes[i].title.split("\n"), ...mixLines(model, model.mixOf(i))];
  lines.push(...toneLines(model, i));
  if (model.marks[i] === "2") lines.push("◆ on the critical path");
  if (model.marks[i] === "1") lines.push("◇ partly on the critical path");
  return lines;
}

function edgeLines(model, edge) {
  const name = (i) => model.nodes[i].label;
  const lines = [`${name(edge.from)} → ${name(edge.to)}`, ...edge.title.split("\n")];
  if (edge.number === undefined) return [...lines, "◆ on the critical path, no data goes here"];
  const marked = model.path[edge.number] === "1" ? ["◆ on the critical path"] : [];
  return [...lines, ...crossingLines(model, edge), ...marked];
}
