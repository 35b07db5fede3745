// Keeps a view under its hash until a canvas asks for it.
const home = (globalThis.__placementCanvas ??= {});
home.views ??= new Map();
home.waiters ??= new Set();

export default function ({ data }) {
  if (!data || !data.hash) return;
  home.views.delete(data.hash);
  home.views.set(data.hash, data);
  for (const hash of home.views.keys()) {
    if (home.views.size <= 8) break;
    home.views.delete(hash);
  }
  for (const wake of [...home.waiters]) wake();
}
