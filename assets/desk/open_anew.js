// A page that Streamlit's browser side has given up is opened anew.
//
// After an error while it draws, React takes all of a page away: what is left is blank, hears nothing and
// says nothing. A project is on the disk, and its page is opened as whoever loads it again would. A
// page that is given up soon after that says so, rather than be opened for ever; one that has never
// drawn anything is left as it is.

const AGAIN_MS = 20_000;
// React has taken all away by then.
const GONE_MS = 300;
const OPENED_ANEW = "placement-opened-anew";
const GIVEN_UP = "This page could not be drawn. Your project is saved: load the page again, or open its address in another window.";

class OpenAnew {
  constructor() {
    this.wasDrawn = this.isOver = false;
    for (const kind of ["error", "unhandledrejection"]) {
      window.addEventListener(kind, () => setTimeout(() => this.look(), GONE_MS));
    }
    document.addEventListener("DOMContentLoaded", () => {
      const drawn = new MutationObserver(() => {
        this.wasDrawn = true;
        drawn.disconnect();
      });
      drawn.observe(document.getElementById("root"), { childList: true });
    });
  }

  look() {
    const root = document.getElementById("root");
    if (this.isOver || !this.wasDrawn || root.childElementCount) return;
    // One failure may be told of by several errors.
    this.isOver = true;
    if (this.mayAgain()) location.reload();
    else this.say(root);
  }

  // A browser that keeps nothing would not know that it has done so already.
  mayAgain() {
    try {
      const since = Date.now() - Number(sessionStorage.getItem(OPENED_ANEW));
      sessionStorage.setItem(OPENED_ANEW, String(Date.now()));
      return since >= AGAIN_MS;
    } catch {
      return false;
    }
  }

  say(root) {
    document.getElementById("placement-first-sight")?.remove();
    root.setAttribute("role", "alert");
    Object.assign(root.style, { padding: "3rem", font: "16px sans-serif", color: "#1b2130", background: "#ffffff" });
    root.textContent = GIVEN_UP;
  }
}

new OpenAnew();
