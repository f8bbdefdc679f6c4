/** What is printed: the map on a sheet, then a sheet for the driver of each route. */

import { $, h, show } from "./dom.js";
import { capacityOf, startsAnywhere, vehicleName } from "./fleet.js";
import { picture, summary } from "./picture.js";
import { isPickup, locations, windowsOf } from "./problem.js";
import { breaches, remaining } from "./solution.js";
import { state } from "./state.js";
import { clock, length, minute, span } from "./units.js";

const COLUMNS = ["", "Stop", "Arrives", "Leaves", "Window", "Hand over", "Collect", "Load after", "Driven"];

function fill() {
  const { model, shown } = state;
  if (!model) return;
  const places = new Map(locations(model).map((location) => [location.id, location]));
  const routes = remaining(model, shown?.routes ?? []);
  $("#sheets").replaceChildren(overview(), ...routes.map((route) => sheet(route, routes.length, places)));
}

function overview() {
  const root = document.documentElement;
  const { theme } = root.dataset;
  root.dataset.theme = "light"; // as paper is
  const drawn = new DOMParser().parseFromString(picture(), "image/svg+xml").documentElement;
  root.dataset.theme = theme;
  return h("section", { class: "sheet" }, drawn);
}

function sheet(route, total, places) {
  const { model } = state;
  const depot = places.get(route.depot)?.name ?? "";
  const begins = startsAnywhere(model, route) ? "Begins with the first stop" : `Leaves ${depot}`;
  const last = places.get(route.endDepot)?.name;
  const end = route.endDepot === null ? "after the last stop" : `${last === depot ? "back " : ""}at ${last}`;
  const vehicle = vehicleName(model, route);
  return h(
    "section",
    { class: "sheet" },
    h("h2", {}, `Route ${route.number} of ${total}${vehicle && `, ${vehicle}`}: ${model.name}`),
    ...notices(),
    h(
      "p",
      {},
      `${begins} at ${minute(model, route.start)}, ${end} at ${minute(model, route.end)}. `,
      `${length(model, route.length)}, load ${show(route.load)} of ${show(capacityOf(model, route))}, `,
      `${span(model, route.waiting)} of waiting.`,
    ),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, COLUMNS.map((title) => h("th", {}, title)))),
      h("tbody", {}, route.stops.map((stop, i) => row(stop, i, places.get(stop.id)))),
    ),
    h("p", { class: "small" }, summary()),
  );
}

const notices = () =>
  breaches(state.run).map((breach) => h("p", { class: "bad" }, `Not feasible: ${breach}`));

function row(stop, i, place) {
  const { model } = state;
  const pickup = isPickup(model, place);
  const windows = windowsOf(model, place);
  const cells = [
    i + 1,
    place.name,
    minute(model, stop.arrival),
    minute(model, stop.departure),
    windows.map((ends) => ends.map((end) => (end === null ? "" : clock(model, end))).join(" – ")).join(", "),
    place.amount === undefined ? "reload" : show(pickup ? place.received : place.amount),
    show(pickup ? place.amount : 0),
    show(stop.load),
    length(model, stop.distance),
  ];
  return h("tr", {}, cells.map((cell) => h("td", {}, String(cell))));
}

addEventListener("beforeprint", fill);
