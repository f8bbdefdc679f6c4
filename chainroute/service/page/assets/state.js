/** The one store: what is drawn, solved and looked at. Views subscribe to it and read it; they write by
 * `change` and `edit`. */

export const state = {
  model: null, // the problem being edited, see problem.js
  // the solving in progress or its end: {id, status, snapshots, policy, limit, notes}; after an edit
  // its status is "edited", with the violations that the judge found, or "faulty"
  run: null,
  unjudged: false, // whether the model was edited since the judge saw it
  seconds: 0, // since it began
  shown: null, // the snapshot on show: {source, seconds, cost, routes}, see solution.js and streets.js
  against: null, // a snapshot to compare with
  near: null, // id of the location under the pointer
  hover: null, // number of the route under the pointer or focus
  pinned: null, // number of the route that was chosen
  selected: null, // id of the location that was chosen
  faults: [], // what the service found wrong: [{code, message, where, remedy}]
  limits: {}, // what the service allows: {max_bytes, max_customers, max_name, max_time_limit}
  roads: null, // the kind of routing server that the service has, if any
  opened: 0, // which of the problems opened it is, counted from 1
  restored: 0, // how often a moment of the past was brought back
  tab: "schedule", // what the dock shows, or "table", or "vehicles"
  tool: "move", // what a click on the map does: "move", "customer" or "depot"
};

const listeners = [];
const [past, future] = [[], []]; // moments, see `present`
let openings = 0;
let changed = null;

/** Calls `listener` with the set of changed keys, once per frame. */
export function subscribe(listener) {
  listeners.push(listener);
}

export function change(values) {
  const keys = Object.keys(values).filter((key) => state[key] !== values[key]);
  Object.assign(state, values);
  if (!keys.length) return;
  if (changed === null) {
    changed = new Set();
    requestAnimationFrame(() => {
      const now = changed;
      changed = null;
      listeners.forEach((listener) => listener(now));
    });
  }
  keys.forEach((key) => changed.add(key));
}

export const running = () => state.run?.status === "queued" || state.run?.status === "running";

/** What `undo` brings back: a problem with what was known of its routes. */
const present = () => {
  const { model, run, shown, unjudged, opened } = state;
  return { model, run, shown, unjudged, opened };
};

/** Keeps the present for `undo`, before something takes its place. */
export function remember() {
  if (!state.model) return;
  past.push(present());
  if (past.length > 100) past.shift();
  future.length = 0;
}

/** A new model takes the place of the one before, which `undo` brings back. Nothing is edited during a run. */
export function edit(model) {
  if (running() || model === state.model) return;
  remember();
  change({ model, unjudged: true });
}

export const undo = () => travel(past, future);
export const redo = () => travel(future, past);

/** Whether there was anywhere to go. */
function travel(from, to) {
  if (!from.length || running()) return false;
  to.push(present());
  restore(from.pop());
  return true;
}

/** A moment as it was, its routes and verdict included; what the judge had not seen by then is judged now. */
export function restore(moment) {
  change({ ...moment, restored: state.restored + 1, against: null, faults: [] });
  change({ near: null, hover: null, pinned: null, selected: null });
}

/** Another problem altogether: nothing of the last one remains, but for `undo`. */
export function open(model) {
  remember();
  change({ model, opened: ++openings, run: null, shown: null, unjudged: false, against: null });
  change({ near: null, hover: null, pinned: null, selected: null, faults: [] });
}
