/** The one store: what is drawn, solved and looked at. Views subscribe to it and read it; they write by
 * `change` and `edit`. */

export const state = {
  model: null, // the problem being edited, see problem.js
  // the solving in progress or its end: {id, status, snapshots, policy, limit, notes}; after an edit
  // its status is "edited", with the violations that the judge found, or "faulty"
  run: null,
  seconds: 0, // since it began
  shown: null, // the snapshot on show: {source, seconds, cost, routes}, see solution.js
  against: null, // a snapshot to compare with
  near: null, // id of the location under the pointer
  hover: null, // number of the route under the pointer or focus
  pinned: null, // number of the route that was chosen
  selected: null, // id of the location that was chosen
  faults: [], // what the service found wrong: [{code, message, where, remedy}]
  opened: 0, // how many problems were opened
  tab: "schedule", // what the dock shows, or "table"
  tool: "move", // what a click on the map does: "move", "customer" or "depot"
};

const listeners = [];
const past = [];
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

/** A new model takes the place of the one before, which `undo` brings back. Nothing is edited during a run. */
export function edit(model, before = state.model) {
  if (running() || model === before) return;
  past.push(before);
  if (past.length > 100) past.shift();
  change({ model });
}

export function undo() {
  if (past.length && !running()) change({ model: past.pop(), selected: null });
}

/** Another problem altogether: nothing of the last one remains. */
export function open(model) {
  past.length = 0;
  change({ model, opened: state.opened + 1, run: null, shown: null, against: null });
  change({ near: null, hover: null, pinned: null, selected: null, faults: [] });
}
