// The tab of the dock that somebody pressed stays open.
//
// Streamlit draws the dock for every press and says with it which tab that was. Its browser side
// takes this for a wish of Python's, so who presses a second tab before the first is drawn is
// thrown back to the first; and while tabs are drawn a press does nothing. Python never opens one of
// these tabs by itself: where it wants another open, all of them are made anew (steps/walk.py). So
// a tab that gives way with nobody pressing another is pressed again.

const TAB = ".st-key-desk-dock [role=tab]";
const PRESSES = ["pointerdown", "click", "keydown"];
// Each answer that is late may take the tab away once.
const MOST_TIMES = 5;

class PressedTab {
  constructor() {
    this.tab = null;
    this.isOurs = false;
    this.observer = new MutationObserver(() => this.keep());
    this.onPress = (event) => this.note(event);
    for (const type of PRESSES) window.addEventListener(type, this.onPress, true);
  }

  note(event) {
    const tab = event.target.closest?.(TAB);
    if (!tab || event.button || this.isOurs) return;
    const tabs = tab.closest("[role=tablist]");
    if (event.type === "keydown") {
      // Which one that opens is known once all have heard of the key.
      setTimeout(() => this.watch(tabs, tabs.querySelector("[aria-selected=true]")));
    } else if (event.type === "click" || event.pointerType === "mouse") this.watch(tabs, tab);
  }

  watch(tabs, tab) {
    this.observer.disconnect();
    [this.tab, this.times] = [tab, 0];
    if (!tab) return;
    const attributeFilter = ["aria-selected", "aria-disabled"];
    this.observer.observe(tabs, { subtree: true, attributeFilter });
  }

  keep() {
    const { tab } = this;
    if (!tab.isConnected || this.times >= MOST_TIMES) return this.watch(null, null);
    if (tab.ariaSelected === "true" || tab.ariaDisabled === "true") return;
    this.times += 1;
    const focused = focusedNow();
    this.isOurs = true;
    tab.click();
    this.isOurs = false;
    // Whoever has gone on elsewhere meanwhile stays there.
    if (focusedNow() !== focused) focused?.focus({ preventScroll: true });
  }

  destroy() {
    this.observer.disconnect();
    for (const type of PRESSES) window.removeEventListener(type, this.onPress, true);
  }
}

function focusedNow() {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return one;
}
