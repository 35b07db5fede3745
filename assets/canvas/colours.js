// Theme and device colours. Streamlit sets --st-* variables on the component's host.

const CODE = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

function rgb(text) {
  const hex = /^#([0-9a-f]{6})/i.exec(text.trim());
  if (hex) {
    const n = parseInt(hex[1], 16);
    return [n >> 16, (n >> 8) & 255, n & 255];
  }
  const parts = text.match(/[\d.]+/g);
  return parts && parts.length >= 3 ? parts.slice(0, 3).map(Number) : [128, 128, 128];
}

function blend(under, over, share) {
  const a = rgb(under);
  const b = rgb(over);
  return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * share)).join(",")})`;
}

function alpha(colour, share) {
  return `rgba(${rgb(colour).join(",")},${share})`;
}

function luminance(colour) {
  const [r, g, b] = rgb(colour).map((v) => {
    const s = v / 255;
    return s <= 0.04 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// Of a dark and a white ink the one with more contrast.
function inkOn(colour) {
  return luminance(colour) > 0.19 ? "#14181f" : "#ffffff";
}

function readTheme(element) {
  const style = getComputedStyle(element);
  const get = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
  const background = get("--st-background-color", "#ffffff");
  const text = get("--st-text-color", "#1b2130");
  const dark = luminance(background) < 0.4;
  return {
    dark,
    background,
    text,
    // Canvas fonts take no var(); the first family that exists wins as in CSS.
    font: get("--st-font", "sans-serif"),
    line: blend(background, text, dark ? 0.45 : 0.38),
    faint: blend(background, text, dark ? 0.62 : 0.55),
    frame: blend(background, text, 0.22),
    // The critical path, here as in the timelines.
    critical: "#e5484d",
    guess: "#d98200",
    neutral: blend(background, text, 0.08),
  };
}

// Devices beyond those of CODE have ideographs, which follow one another (see painting.py).
const FURTHER = 0x4e00;

function codeOf(device) {
  if (device < 0) return ".";
  return CODE[device] ?? String.fromCharCode(FURTHER + device);
}

// -1 for several devices, and for none.
function deviceAt(character) {
  const code = character.charCodeAt(0);
  return code >= FURTHER ? code - FURTHER : CODE.indexOf(character);
}

function deviceColour(devices, index) {
  return devices[index]?.colour ?? "#9aa0a8";
}

// The colour of a tone's character; scales turn round, so that much stands out from the ground.
function toneColour(tones, theme, character) {
  const index = deviceAt(character);
  if (index < 0 || !tones.keys[index]) return null;
  const turned = tones.ends && !theme.dark;
  return tones.keys[turned ? tones.keys.length - 1 - index : index][1];
}

// What a card shows: one colour, or bands of [colour, share, hatch]; no colour is nothing at all.
function shadeOf({ model, theme }, i) {
  if (model.tones) {
    const code = model.tones.codes[i];
    if (code !== "*") return { colour: toneColour(model.tones, theme, code), bands: null };
    const bands = [...(model.tones.bands[i] ?? "")];
    return { colour: null, bands: bands.map((c) => [toneColour(model.tones, theme, c), 1, ""]) };
  }
  const paint = (device) => (device < 0 ? null : deviceColour(model.devices, device));
  if (model.colours[i] !== "*") return { colour: paint(deviceAt(model.colours[i])), bands: null };
  const band = ([device, ops]) => [paint(device), ops, hatchOf(model, device)];
  return { colour: null, bands: model.mixOf(i).map(band) };
}

// How strongly a card is drawn, from its digit; all of it where nothing is said.
function opacityOf(model, i) {
  return model.opacity ? Number(model.opacity[i]) / 9 : 1;
}

// The hatch of a device, empty where none is wanted.
function hatchOf(model, device) {
  return (model.hatched && model.devices[device]?.pattern) || "";
}
