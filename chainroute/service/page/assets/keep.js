/** The work is kept in the browser, so that it survives a reload, Back and a restart of the service. */

import { adopt } from "./problem.js";
import { restore, running, state, subscribe } from "./state.js";

const KEY = "work";
const PAUSE = 300; // milliseconds after the last change
let pending = null;

function keep() {
  const { model, run, shown } = state;
  try {
    localStorage.setItem(KEY, JSON.stringify({ model, run, shown }));
  } catch {
    localStorage.removeItem(KEY); // too large to be kept; better nothing than something old
  }
}

subscribe((keys) => {
  if (!["model", "run", "shown"].some((key) => keys.has(key)) || !state.model || running()) return;
  clearTimeout(pending);
  pending = setTimeout(keep, PAUSE);
});

addEventListener("pagehide", () => {
  if (state.model && !running()) keep();
});

/** Brings back what was kept; whether there was anything. */
export function recall() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    if (!kept?.model?.depots?.length) return false;
    adopt(kept.model);
    restore({ ...kept, opened: 1 });
    return true;
  } catch {
    localStorage.removeItem(KEY); // of another version, or not ours
    return false;
  }
}
