/** What pointers and keys do on the map. */

import { $ } from "./dom.js";
import { coordinates, fit, nearest, onScreen, pan, zoom } from "./map.js";
import { addCustomer, addDepot, fixed, remove, set } from "./problem.js";
import { change, edit, remember, running, state } from "./state.js";
import { centre } from "./view.js";

const svg = $("#map");

// -- pointers: a drag moves a location or the view, two fingers zoom, a click chooses or adds

const pointers = new Map();
let drag = null; // {id, route, from, moved, kept: whether `undo` knows where the location was}

const at = (event) => {
  const box = svg.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

svg.addEventListener("pointerdown", (event) => {
  svg.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, at(event));
  const id = nearest(at(event), event.pointerType === "touch" ? 22 : 12);
  const route = event.target.closest("[data-route]");
  drag = { id, route, from: at(event), moved: false, kept: false };
});

svg.addEventListener("pointermove", (event) => {
  const here = at(event);
  const before = pointers.get(event.pointerId);
  if (!before) return look(event, here);
  if (pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    const gap = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1;
    drag = null;
    zoom(gap(here) / gap(before), other);
  } else if (drag) {
    drag.moved ||= Math.hypot(here[0] - drag.from[0], here[1] - drag.from[1]) > 4;
    if (drag.moved && drag.id !== null && !running() && !fixed(state.model)) {
      if (!drag.kept) remember();
      drag.kept = true;
      change({ model: set(state.model, drag.id, coordinates(here)), unjudged: true, selected: drag.id });
    } else if (drag.moved) {
      pan(here[0] - before[0], here[1] - before[1]);
    }
  }
  pointers.set(event.pointerId, here);
});

for (const end of ["pointerup", "pointercancel"]) {
  svg.addEventListener(end, (event) => {
    pointers.delete(event.pointerId);
    const done = drag;
    drag = null;
    if (done && !done.moved && end === "pointerup") click(done);
  });
}

function click({ id, route, from }) {
  if (id !== null) change({ selected: id, pinned: routeOf(id) });
  else if (state.tool !== "move") add(from);
  else if (route) change({ pinned: Number(route.dataset.route), selected: null });
  else change({ pinned: null, selected: null });
}

const routeOf = (id) => state.shown?.routes.find(({ visits }) => visits.includes(id))?.number ?? null;

/** What the pointer is over: a location, else a route. */
function look(event, here) {
  const near = nearest(here, 10);
  const route = event.target.closest("[data-route]")?.dataset.route;
  change({ near, hover: near !== null ? routeOf(near) : route ? Number(route) : null });
}

svg.addEventListener("pointerleave", () => change({ near: null, hover: null }));

svg.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), at(event));
  },
  { passive: false },
);

function add(point) {
  if (fixed(state.model)) return;
  const { x, y } = coordinates(point);
  const depot = state.tool === "depot";
  const model = depot ? addDepot(state.model, x, y) : addCustomer(state.model, x, y);
  edit(model);
  change({ selected: (depot ? model.depots : model.customers).at(-1).id });
}

/** Takes the chosen location away. */
export function removeChosen() {
  if (state.selected === null) return;
  edit(remove(state.model, state.selected));
  change({ selected: null });
}

// -- keys

svg.addEventListener("keydown", (event) => {
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const actions = {
    "+": () => zoom(1.3),
    "=": () => zoom(1.3),
    "-": () => zoom(1 / 1.3),
    0: fit,
    Delete: removeChosen,
    Backspace: removeChosen,
    Enter: () => state.tool !== "move" && add(centre()),
    PageDown: () => step(1),
    PageUp: () => step(-1),
  };
  const arrow = arrows[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey || !(arrow || actions[event.key])) return;
  event.preventDefault();
  if (arrow) nudge(arrow, event.shiftKey ? 1 : 12);
  else actions[event.key]();
});

function nudge([dx, dy], pixels) {
  const spot = onScreen([state.selected])[0];
  if (!spot) return pan(-dx * 40, -dy * 40);
  if (fixed(state.model)) return;
  const [x, y] = spot;
  edit(set(state.model, state.selected, coordinates([x + dx * pixels, y + dy * pixels])));
}

/** To the next or previous route. */
function step(by) {
  const count = state.shown?.routes.length ?? 0;
  if (!count) return;
  const now = state.pinned ?? (by > 0 ? 0 : count + 1);
  change({ pinned: ((now - 1 + by + count) % count) + 1, selected: null });
}
