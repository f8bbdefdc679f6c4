/** Routes as GeoJSON, the same as the library writes (docs/formats.md): a line for each route, a point for
 * each location. */

import { startsAnywhere } from "./fleet.js";
import { depotsOf, isPickup, locations, spans, windowsOf } from "./problem.js";
import { breaches, remaining, vehicleOf } from "./solution.js";
import { state } from "./state.js";

export const onGlobe = (model) =>
  model.globe && locations(model).every(({ x, y }) => x !== null && y !== null);

export function geoText() {
  const { model, shown, run } = state;
  const places = new Map(locations(model).map((location) => [location.id, location]));
  const point = (id) => [places.get(id).x, places.get(id).y];
  const routes = remaining(model, shown.routes);
  const visits = new Map(
    routes.flatMap(({ number, stops }) => stops.map((stop, i) => [stop.id, { number, i, stop }])),
  );
  const lines = routes.map((route) =>
    feature("LineString", shown.lines?.[route.number] ?? straight(model, route).map(point), {
      kind: "route",
      route: route.number,
      depot: places.get(route.depot).name,
      ...vehicleOf(model, route),
      customers: route.visits.map((id) => places.get(id).name),
      length: route.length,
      start: route.start,
      end: route.end,
      waiting: route.waiting,
      max_load: route.load,
    }),
  );
  const depots = new Set(depotsOf(model));
  const points = locations(model).map((location) =>
    feature("Point", point(location.id), {
      kind: depots.has(location) ? "depot" : "customer",
      name: location.name,
      ...(depots.has(location) ? {} : demand(model, location)),
      ...hours(model, location),
      ...visit(visits.get(location.id)),
    }),
  );
  const broken = breaches(run);
  const verdict = broken.length ? { feasible: false, violations: broken } : {};
  const collection = { type: "FeatureCollection", ...verdict, features: [...lines, ...points] };
  return `${JSON.stringify(collection, null, 1)}\n`;
}

function straight(model, route) {
  const { depot, visits, endDepot } = route;
  return [...(startsAnywhere(model, route) ? [] : [depot]), ...visits, ...(endDepot === null ? [] : [endDepot])];
}

const feature = (type, coordinates, properties) => ({
  type: "Feature",
  geometry: { type, coordinates },
  properties,
});

function hours(model, location) {
  const windows = windowsOf(model, location);
  return spans(model.windows && !windows.length ? [[0, null]] : windows);
}

const demand = (model, { amount, received, service, ...customer }) => ({
  delivery: isPickup(model, customer) ? received : amount,
  pickup: isPickup(model, customer) ? amount : 0,
  service,
});

const visit = (found) =>
  found
    ? {
        route: found.number,
        stop: found.i + 1,
        arrival: found.stop.arrival,
        waiting: found.stop.start - found.stop.arrival,
        start: found.stop.start,
        departure: found.stop.departure,
        load: found.stop.load,
        distance: found.stop.distance,
      }
    : {};
