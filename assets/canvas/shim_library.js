// A cancel goes by this component and not by the canvas's own: as a rerun of the whole page it may
// interrupt what Python is laying out, where a fragment's rerun would wait behind it.
export default function ({ setTriggerValue }) {
  globalThis.__placementCanvas.cancel = () => setTriggerValue("cancel", Date.now());
}
