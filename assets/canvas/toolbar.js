// A row of buttons as one tab stop: arrow keys go from button to button.

function roving(row) {
  const items = () => [...row.querySelectorAll("button")].filter((b) => !b.disabled);
  const choose = (item) => {
    for (const other of row.querySelectorAll("button")) other.tabIndex = other === item ? 0 : -1;
  };
  row.addEventListener("focusin", (event) => {
    if (event.target.closest("button")) choose(event.target.closest("button"));
  });
  row.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(event.target.closest("button"));
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0 || !all.length) return;
    if (step) all[(at + step + all.length) % all.length].focus();
    else if (event.key === "Home") all[0].focus();
    else if (event.key === "End") all[all.length - 1].focus();
    else return;
    event.preventDefault();
  });
  // Buttons that come later, or are enabled or disabled, must leave one of them in the tab order.
  return () => {
    const all = items();
    if (!all.some((item) => item.tabIndex === 0)) choose(all[0]);
    else choose(all.find((item) => item.tabIndex === 0));
  };
}
