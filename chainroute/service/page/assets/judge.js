/** The judge's view of routes that no run has found: of edits at once, and of solutions that are opened. */

import * as api from "./api.js";
import { toDocument } from "./problem.js";
import { snapshot, toDocument as routesDocument } from "./solution.js";
import { change, remember, running, state, subscribe } from "./state.js";

const PAUSE = 250; // milliseconds after an edit
const RETRY = 2000; // milliseconds until a service that did not answer is asked again
let pending = null; // the edit that is about to be judged
let retry = null; // the same of one that got no answer
let asked = null; // what can be broken off when it is edited again

/** Shows routes with what the judge says of them; `source` is where they come from. */
export function show(model, verdict, source) {
  const { cost, solution, violations } = verdict;
  const shot = snapshot(model, { source, seconds: 0, cost, solution }, state.shown);
  const run = { status: source, violations, snapshots: [shot] };
  change({ run, seconds: 0, shown: shot, unjudged: false, against: null, faults: [] });
}

/** Has other routes for the problem on show judged, and shows them; `undo` brings back those before. Throws
 * what the service refuses. */
export async function propose(routes, source) {
  const { model } = state;
  const verdict = await api.check(toDocument(model), routes, model.roads);
  if (state.model !== model || running()) return;
  remember();
  show(model, verdict, source);
}

/** Waits until nothing on show is yet to be judged. */
export async function settled() {
  while (pending) await new Promise((resolve) => setTimeout(resolve, PAUSE / 5));
}

/** Nothing is to be judged any more. */
function rest() {
  clearTimeout(pending);
  clearTimeout(retry);
  asked?.abort();
  pending = null;
}

function recheck() {
  rest();
  const mine = (pending = setTimeout(async () => {
    await judge();
    if (pending === mine) pending = null;
  }, PAUSE));
}

async function judge() {
  const { model, shown } = state;
  if (!model.customers.length) return change({ run: null, shown: null, unjudged: false, against: null, faults: [] });
  asked = new AbortController();
  try {
    const routes = shown ? routesDocument(model, shown) : { routes: [] };
    const verdict = await api.check(toDocument(model), routes, model.roads, asked.signal);
    if (state.model !== model || running()) return;
    if (shown) show(model, verdict, "edited");
    else change({ unjudged: false, faults: [] });
  } catch (error) {
    if (error.name !== "AbortError" && !(error instanceof api.Refusal)) throw error;
    if (!error.faults || state.model !== model || running()) return;
    const silent = !error.status;
    if (silent) retry = setTimeout(recheck, RETRY);
    const told = state.run ? state.run.status === "unjudged" : state.faults[0]?.code === error.faults[0].code;
    if (silent && told) return;
    const run = state.run && { ...state.run, status: silent ? "unjudged" : "faulty", violations: [] };
    change({ faults: error.faults, run });
  }
}

subscribe((keys) => {
  if (!keys.has("model") && !keys.has("restored")) return;
  if (state.unjudged) recheck();
  else rest();
});
