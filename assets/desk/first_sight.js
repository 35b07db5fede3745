// The picture of the project that the address names, drawn before Streamlit's program has begun.
//
// It stands where desk.css will put it, and is the canvas itself: what somebody does to it lasts, for
// the component of the page takes it over as it is (home.draw in assets/canvas/instance.js). Where no
// canvas comes, because the page has something else to say, it goes.

const home = (globalThis.__placementCanvas ??= {});
const NARROW = "(max-width: 999px)";
const SMALL = "(max-width: 1199px)";
const DARK = "(prefers-color-scheme: dark)";
// A page that has drawn nothing by then has gone wrong, and says so somewhere else.
const PATIENCE_MS = 20_000;
// What a run has sent is drawn a moment after its end.
const REST_MS = 2000;
const LOOK_MS = 100;
const REM = 16;

// Browsers lay out in steps of 1/64 pixel: what is off by less is drawn anew, and seen to move.
const snapped = (px) => Math.floor(px * 64) / 64;

class FirstSight {
  constructor(project) {
    this.project = project;
    this.asked = fetch(new URL(`placement/first?project=${encodeURIComponent(project)}`, document.baseURI))
      .then((answer) => (answer.status === 200 ? answer.json() : null))
      .catch(() => null);
    this.begun = this.since = performance.now();
    this.font();
  }

  // Called by the library of the canvas, once it is there.
  async draw(draw) {
    const [found] = await Promise.all([this.asked, this.fonted]);
    // The page was quicker, or shows something else by now.
    if (!found || home.alive?.size || !this.isWanted()) return;
    this.host = document.createElement("div");
    this.host.id = "placement-first-sight";
    Object.assign(this.host.style, { position: "fixed", zIndex: 5, ...this.place() });
    this.theme();
    const root = this.host.attachShadow({ mode: "open" });
    const style = document.createElement("style");
    style.textContent = found.css;
    const parent = document.createElement("div");
    parent.style.height = "100%";
    root.append(style, parent);
    document.body.append(this.host);
    draw(parent, found, () => this.end());
    this.watch = setInterval(() => this.isWanted() || this.end(), LOOK_MS);
  }

  // Whether the page may still come to draw this canvas.
  isWanted() {
    if (performance.now() - this.begun > PATIENCE_MS) return false;
    if (projectOf(location) !== this.project) return false;
    const state = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState;
    if (state === "running") this.ran = true;
    if (!this.ran || state === "running") this.since = performance.now();
    return performance.now() - this.since < REST_MS;
  }

  end() {
    clearInterval(this.watch);
    this.host?.remove();
    home.leaveFirst?.();
  }

  // As desk.css has it: below the menu, the strip and the score, left of the inspector.
  place() {
    const kept = this.remembered();
    const details = kept.details || (matchMedia(NARROW).matches ? "folded" : "open");
    const beside = details === "folded" || matchMedia(NARROW).matches ? "0px" : matchMedia(SMALL).matches ? "264px" : "304px";
    const dock = kept.dock === "folded" ? 2.3 * REM : kept.height || innerHeight / 4;
    const [head, strip, score, notices, gap] = [2.2 * REM, 2.6 * REM, 2.35 * REM, 1.7 * REM, 4];
    const room = innerHeight - snapped(head) - snapped(0.2 * REM);
    return {
      display: kept.dock === "full" ? "none" : "block",
      top: `${snapped(head) + snapped(strip) + snapped(score) + 2 * gap}px`,
      left: "0.5rem",
      width: `calc(100vw - 1rem - ${beside})`,
      height: `${snapped(room - strip - score - dock - notices - 5 * gap)}px`,
    };
  }

  remembered() {
    try {
      return JSON.parse(localStorage.getItem(`placement-desk-${this.project}`) ?? "{}") ?? {};
    } catch {
      return {};
    }
  }

  // Streamlit's two themes, by the same rule: what somebody has chosen here, or else what the system says.
  theme() {
    let chosen = "";
    try {
      chosen = localStorage.getItem(`stActiveTheme-${location.pathname}-v2`) ?? "";
    } catch {
      // A browser that keeps nothing.
    }
    const dark = /dark/i.test(chosen) || (!/light/i.test(chosen) && matchMedia(DARK).matches);
    this.host.style.setProperty("--st-background-color", dark ? "#0e1117" : "#ffffff");
    this.host.style.setProperty("--st-text-color", dark ? "#fafafa" : "#31333f");
    this.host.style.setProperty("--st-font", '"Source Sans", sans-serif');
  }

  // The page's own font, which its head has asked for already.
  font() {
    const link = document.querySelector("link[rel=preload][as=font]");
    if (!link) return;
    const face = new FontFace("Source Sans", `url(${link.href})`, { weight: "200 900" });
    this.fonted = face.load().then((loaded) => document.fonts.add(loaded), () => {});
  }
}

// The project of the Studio page, unless it is presented; the other pages have paths of their own.
function projectOf({ pathname, search }) {
  const query = new URLSearchParams(search);
  return pathname.endsWith("/") && !query.has("present") ? query.get("project") : null;
}

const project = projectOf(location);
if (project) {
  home.first = new FirstSight(project);
  if (home.drawFirst) home.first.draw(home.drawFirst);
}
