/** The list of routes; the chosen one opens into its stops, which can be moved by hand. */

import { $, count, h, show } from "./dom.js";
import { capacityOf, vehicleName } from "./fleet.js";
import { move, shift } from "./moves.js";
import { depotsOf, locations } from "./problem.js";
import { colour, served } from "./solution.js";
import { change, running, state, subscribe } from "./state.js";
import { length, minute } from "./units.js";

const list = $("#routes");
const MOVING = "application/x-stop"; // what is dragged: the id of a customer

function draw() {
  const { model, shown } = state;
  const places = new Map(locations(model).map((location) => [location.id, location]));
  const focused = document.activeElement?.closest("#routes [data-focus]")?.dataset.focus;
  list.replaceChildren(...(shown?.routes ?? []).map((route) => entry(route, places)));
  if (focused) $(`[data-focus="${focused}"]`, list)?.focus();
  if (!shown) list.append(h("li", { class: "empty" }, "No routes yet."));
}

function entry(route, places) {
  const { model, pinned } = state;
  const open = route.number === pinned;
  const depot = depotsOf(model).length > 1 ? (places.get(route.depot)?.name ?? "") : "";
  const from = [vehicleName(model, route), depot].filter(Boolean).map((word) => ` · ${word}`).join("");
  const stops = served(model, route).length;
  const trips = stops < route.visits.length ? `, ${route.visits.length - stops + 1} trips` : "";
  const capacity = capacityOf(model, route);
  const button = h(
    "button",
    {
      type: "button",
      "aria-expanded": String(open),
      "data-focus": `route ${route.number}`,
      ...target((id) => move(id, route.number)),
    },
    h("span", { class: "number" }, String(route.number)),
    h("span", {}, count(stops, "stop"), trips, from),
    h("span", { class: "length" }, length(model, route.length)),
    h("meter", {
      min: 0,
      max: capacity,
      value: route.load,
      "aria-label": `Load ${show(route.load)} of ${show(capacity)}`,
    }),
  );
  const details = open ? [departure(route), timetable(route, places)] : [];
  const item = h("li", { "data-number": route.number }, button, ...details);
  item.style.setProperty("--colour", colour(route.slot));
  return item;
}

function departure(route) {
  const { model } = state;
  const [begin, end] = [minute(model, route.start), minute(model, route.end)];
  return h("p", { class: "hint" }, `Leaves ${begin}; ends ${end}.`);
}

const timetable = (route, places) =>
  h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Stop", "Arrives", "Leaves", "Load"].map((title) => h("th", { scope: "col" }, title)),
        h("td"),
      ),
    ),
    h(
      "tbody",
      {},
      route.stops.map((stop, place) => line(route, stop, place, places.get(stop.id))),
    ),
  );

function line(route, stop, place, location) {
  const { model } = state;
  const name = location?.name ?? "";
  const reload = depotsOf(model).includes(location); // which stays where it is, between those who are moved
  const values = [minute(model, stop.arrival), minute(model, stop.departure), show(stop.load)];
  const row = h(
    "tr",
    {
      draggable: String(!reload),
      title: reload ? "Reloads here" : "Drag to another place or route",
      ondragstart: (event) => event.dataTransfer.setData(MOVING, String(stop.id)),
      ...target((id) => move(id, route.number, before(route, id, place))),
    },
    h("th", { scope: "row", title: name }, name),
    ...values.map((text) => h("td", {}, text)),
    h("td", {}, reload ? null : mover(route, stop.id, place, name)),
  );
  return row;
}

/** The place of a row among the others, once the customer has left the route. */
const before = (route, id, place) => {
  const from = route.visits.indexOf(id);
  return from >= 0 && from < place ? place - 1 : place;
};

/** Where a customer can go by keyboard: earlier, later, to other routes or to a new one. */
function mover(route, id, place, name) {
  const others = state.shown.routes.filter(({ number }) => number !== route.number);
  const alone = route.visits.length === 1;
  return h(
    "select",
    {
      "aria-label": `Move ${name}`,
      "data-focus": `stop ${id}`,
      disabled: running(),
      onchange: ({ target: { value } }) => {
        if (value === "earlier") shift(id, -1);
        else if (value === "later") shift(id, 1);
        else move(id, value === "new" ? null : Number(value));
      },
    },
    h("option", { value: "", selected: true, hidden: true }, "⋯"),
    place > 0 ? h("option", { value: "earlier" }, "Earlier") : null,
    place < route.visits.length - 1 ? h("option", { value: "later" }, "Later") : null,
    others.map(({ number }) => h("option", { value: number }, `To route ${number}`)),
    alone ? null : h("option", { value: "new" }, "To a new route"),
  );
}

/** Handlers of something on which a stop can be dropped. */
const target = (take) => ({
  ondragover: ({ currentTarget, dataTransfer }) =>
    currentTarget.classList.toggle("goal", dataTransfer.types.includes(MOVING)),
  ondragleave: ({ currentTarget }) => currentTarget.classList.remove("goal"),
  ondrop: (event) => {
    const id = event.dataTransfer.getData(MOVING);
    event.currentTarget.classList.remove("goal");
    if (!id) return;
    event.stopPropagation();
    event.preventDefault();
    take(Number(id));
  },
});

const numberOf = (event) => Number(event.target.closest("[data-number]")?.dataset.number) || null;
list.addEventListener("pointerover", (event) => change({ hover: numberOf(event) }));
list.addEventListener("pointerleave", () => change({ hover: null }));
list.addEventListener("focusin", (event) => change({ hover: numberOf(event) }));
list.addEventListener("focusout", () => change({ hover: null }));
list.addEventListener("click", (event) => {
  if (!event.target.closest("button")) return;
  const number = numberOf(event);
  change({ pinned: state.pinned === number ? null : number, selected: null });
});

/** The item of the route looked at stands out. */
function mark() {
  for (const item of list.children) {
    item.classList.toggle("on", Number(item.dataset.number) === (state.hover ?? state.pinned));
  }
}

subscribe((keys) => {
  if (!state.model) return;
  if (["shown", "pinned", "model", "run"].some((key) => keys.has(key))) draw();
  if (["shown", "pinned", "hover", "model", "run"].some((key) => keys.has(key))) mark();
});
