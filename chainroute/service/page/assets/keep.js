/** The work is kept in the browser, so that it survives a reload, Back and a restart of the service. */

import { adopted } from "./problem.js";
import { say } from "./say.js";
import { restore, running, state, subscribe } from "./state.js";

const KEY = "work";
const STORAGES = [sessionStorage, localStorage]; // of this tab, then of all
const PAUSE = 300; // milliseconds after the last change
let pending = null;

/** Keeps the work for this tab, and for the next one that is opened; where there is too little room, without
 * the course of the run. */
function keep() {
  const { model, shown, unjudged } = state;
  const run = running() ? { ...state.run, status: "cancelled" } : state.run; // as it is when the page is gone
  const outcome = run && { ...run, snapshots: shown ? [shown] : [], policy: null };
  for (const storage of STORAGES) {
    const work = { model, run, shown, unjudged };
    if (fits(storage, work) || fits(storage, { ...work, run: outcome })) continue;
    storage.removeItem(KEY); // better nothing than something old
    say("This is too large for the browser to keep: save the problem and the solution as files.");
  }
}

function fits(storage, work) {
  try {
    storage.setItem(KEY, JSON.stringify(work, (key, value) => (key === "lines" ? undefined : value)));
    return true;
  } catch {
    return false;
  }
}

subscribe((keys) => {
  if (!["model", "run", "shown"].some((key) => keys.has(key)) || !state.model || running()) return;
  clearTimeout(pending);
  pending = setTimeout(keep, PAUSE);
});

/** Leaving cancels a run: the best so far is kept, or if there is none yet, what was kept before it. */
addEventListener("pagehide", () => {
  if (state.model && (state.shown || !running())) keep();
});

/** Brings back what was kept; whether there was anything. */
export function recall() {
  try {
    const kept = JSON.parse(STORAGES.map((storage) => storage.getItem(KEY)).find(Boolean) ?? null);
    if (!kept?.model?.depots?.length) return false;
    restore({ ...kept, model: adopted(kept.model), opened: -1 }); // not one of those that this visit opens
    return true;
  } catch {
    STORAGES.forEach((storage) => storage.removeItem(KEY)); // of another version, or not ours
    return false;
  }
}
