/** Beside the map: a card on the location or route that is looked at, the legend, and what to do next. */

import { $, count, h, show } from "./dom.js";
import { capacityOf, isGiven, limitOf, vehicleName, WISHES } from "./fleet.js";
import { isLeft } from "./map.js";
import { depotsOf, fixed, isPickup, locations, windowsOf } from "./problem.js";
import { colour, served } from "./solution.js";
import { state, subscribe } from "./state.js";
import { clock, length, minute, span } from "./units.js";

const times = (from, to) =>
  `${clock(state.model, from)} – ${to === null ? "any time" : clock(state.model, to)}`;
const windows = (all) => (all.length ? all.map((one) => times(...one)).join(", ") : null);
const spelled = (value) => (Array.isArray(value) ? value.join(", ") : show(value));
const facts = (pairs) =>
  h(
    "dl",
    {},
    pairs
      .filter(([, fact]) => fact !== null)
      .map(([term, fact]) => h("div", {}, h("dt", {}, term), h("dd", {}, fact))),
  );

function drawCard() {
  const { model, shown, near, hover, pinned, selected } = state;
  const place = locations(model).find(({ id }) => id === (near ?? (hover === null ? selected : null)));
  const route = shown?.routes.find(({ number }) => number === (hover ?? pinned));
  const card = $("#map-card");
  card.hidden = !place && !route;
  card.classList.toggle("right", isLeft(place?.id ?? route?.visits[0])); // out of the way
  if (place) {
    const visited = shown?.routes.find((each) => served(model, each).includes(place.id));
    const stop = visited?.stops.find(({ id }) => id === place.id);
    const waits = stop && stop.start - stop.arrival > 1e-9;
    card.replaceChildren(
      h("strong", {}, place.name),
      facts([
        [
          isPickup(model, place) ? "Pickup" : "Delivery",
          place.amount === undefined ? null : show(place.amount),
        ],
        ["Window", windows(windowsOf(model, place))],
        ...WISHES.map((a) => [a.titles[0], isGiven(a, place[a.key]) ? spelled(place[a.key]) : null]),
        ["Route", visited ? String(visited.number) : null],
        ["Arrives", stop ? minute(model, stop.arrival) : null],
        ["Waits", waits ? span(model, stop.start - stop.arrival) : null],
        ["Leaves", stop ? minute(model, stop.departure) : null],
        ["Load after", stop ? show(stop.load) : null],
        ["Driven", stop ? length(model, stop.distance) : null],
      ]),
    );
  } else if (route) {
    const limit = limitOf(model, route);
    const title = h("strong", {}, `Route ${route.number}`);
    title.style.color = colour(route.slot);
    card.replaceChildren(
      title,
      facts([
        ["Depot", locations(model).find(({ id }) => id === route.depot)?.name ?? null],
        ["Vehicle", vehicleName(model, route) || null],
        ["Stops", String(served(model, route).length)],
        ["Load", `${show(route.load)} of ${show(capacityOf(model, route))}`],
        ["Length", length(model, route.length) + (limit === null ? "" : ` of ${length(model, limit)}`)],
        ["Times", `${minute(model, route.start)} – ${minute(model, route.end)}`],
        ["Waiting", model.windows ? span(model, route.waiting) : null],
      ]),
    );
  }
}

function describe() {
  const { model, shown, tool } = state;
  const size = `${count(model.customers.length, "customer")}, ${count(depotsOf(model).length, "depot")}`;
  const plan = shown ? `, ${count(shown.routes.length, "route")}` : "";
  $("#map-label").textContent = `${model.name}: ${size}${plan}`;
  const hints = {
    move: model.customers.length ? "" : "Choose “+ Customer” and click on the plane",
    customer: "Click to add a customer",
    depot: "Click to add a depot",
  };
  const barred = fixed(model) && tool !== "move";
  $("#map-hint").textContent = barred ? "Places come from a matrix: none can be added" : hints[tool];
  const mark = (name, shape) => h("span", { class: `mark ${shape}` }, name);
  $("#map-legend").replaceChildren(
    mark("Depot", "depot"),
    mark(model.backhaul === "none" ? "Customer" : "Delivery", "customer"),
    ...(model.backhaul === "none" ? [] : [mark("Pickup", "pickup")]),
    ...(state.against ? [mark("Compared", "against")] : []),
  );
}

subscribe((keys) => {
  const changed = (...names) => names.some((name) => keys.has(name));
  if (!state.model) return;
  if (changed("model", "shown", "near", "hover", "pinned", "selected")) drawCard();
  if (changed("model", "shown", "against", "tool")) describe();
});
