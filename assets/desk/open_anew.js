// A page that Streamlit's browser side has given up is opened anew.
//
// After an error while it draws, React takes all of a page away: what is left is blank, hears nothing and
// says nothing. A project is on the disk, and its page is opened as whoever loads it again would. A
// page that is given up soon after that says so, rather than be opened for ever.

const AGAIN_MS = 20_000;
// React has taken all away by then.
const GONE_MS = 300;
const OPENED_ANEW = "placement-opened-anew";
const GIVEN_UP = "This page could not be drawn, twice. Your project is saved: load the page again, or open its address in another tab.";

class OpenAnew {
  constructor() {
    this.wasDrawn = false;
    window.addEventListener("error", () => setTimeout(() => this.look(), GONE_MS));
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
    if (!this.wasDrawn || root.childElementCount) return;
    const since = Date.now() - this.last();
    if (since < AGAIN_MS) {
      root.textContent = GIVEN_UP;
      Object.assign(root.style, { padding: "3rem", font: "16px sans-serif" });
      return;
    }
    try {
      sessionStorage.setItem(OPENED_ANEW, String(Date.now()));
    } catch {
      // A browser that keeps nothing could open it for ever.
      return;
    }
    location.reload();
  }

  last() {
    try {
      return Number(sessionStorage.getItem(OPENED_ANEW));
    } catch {
      return 0;
    }
  }
}

new OpenAnew();
