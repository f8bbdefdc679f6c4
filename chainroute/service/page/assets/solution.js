/** Solutions as the page keeps them: snapshots {source, seconds, cost, parts, leftOut, routes}, locations by
 * id; the routes are null where the service left them out because better ones came at once.
 *
 * A route has its `number`, `depot`, `endDepot` (null: it ends at its last stop), `vehicle` (the id of its
 * type, if there are any), `visits` (a depot among them is where it reloads), facts (`length`, `load`, `start`, `end`, `waiting`), `stops`
 * {id, arrival, start, departure, load, distance}, and the `slot` that gives it its colour.
 */

import { depotsOf, locations } from "./problem.js";

/** In this order, what a solution can come from. */
export const SOURCES = {
  given: "Given",
  policy: "Policy (network)",
  construction: "Construction",
  polish: "Polish (PyVRP)",
  search: "Search (PyVRP)",
  exact: "Exact",
  opened: "Opened",
  edited: "Edited",
};

/** The service's document as a snapshot, for the model that was sent; `previous` lends its colours. */
export function snapshot(model, { source, seconds, cost, solution }, previous) {
  const { parts = null, left_out: leftOut = [] } = solution ?? {};
  return { source, seconds, cost, parts, leftOut, routes: solution ? routesOf(model, solution, previous) : null };
}

function routesOf(model, document, previous) {
  const ids = new Map(locations(model).map((location) => [location.name, location.id]));
  const routes = document.routes.map((route, r) => ({
    number: r + 1,
    depot: ids.get(route.depot),
    endDepot: ids.get(route.end_depot === undefined && !model.open ? route.depot : route.end_depot) ?? null,
    vehicle: model.vehicles.find(({ name }) => name === route.vehicle)?.id ?? null,
    visits: route.customers.map((name) => ids.get(name)),
    length: route.length,
    load: route.max_load,
    start: route.start,
    end: route.end,
    waiting: route.waiting,
    stops: route.stops.map((stop) => ({
      id: ids.get(stop.customer),
      arrival: stop.arrival,
      start: stop.start,
      departure: stop.departure,
      load: stop.load,
      distance: stop.distance,
    })),
  }));
  keepColours(routes, previous?.routes ?? []);
  return routes;
}

/** The routes as a document; customers that are gone are left out, and so are routes without any. */
export function toDocument(model, { routes }) {
  const names = new Map(locations(model).map((location) => [location.id, location.name]));
  const [first] = depotsOf(model);
  const types = model.vehicles;
  return {
    routes: routes
      .map((route) => ({
        depot: names.get(route.depot) ?? first.name,
        ...(types.length ? { vehicle: (types.find(({ id }) => id === route.vehicle) ?? types[0]).name } : {}),
        customers: route.visits.filter((id) => names.has(id)).map((id) => names.get(id)),
      }))
      .filter((route) => route.customers.length),
  };
}

/** The routes without what is gone: places may be deleted before the judge has a word on what is left. */
export function remaining(model, routes) {
  const here = new Set(locations(model).map(({ id }) => id));
  const [first] = depotsOf(model);
  const depot = (id) => (id === null || here.has(id) ? id : first.id);
  return routes
    .map((route) => ({
      ...route,
      depot: depot(route.depot),
      endDepot: depot(route.endDepot),
      visits: route.visits.filter((id) => here.has(id)),
      stops: route.stops.filter(({ id }) => here.has(id)),
    }))
    .filter(({ visits }) => visits.length);
}

/** What a route's document says of its vehicle, where there are types. */
export function vehicleOf(model, { vehicle, endDepot }) {
  if (!model.vehicles.length) return {};
  const nameIn = (list, wanted) => list.find(({ id }) => id === wanted)?.name ?? null;
  return { vehicle: nameIn(model.vehicles, vehicle), end_depot: nameIn(model.depots, endDepot) };
}

/** The customers that a route serves, in order; depots among its visits are where it reloads. */
export const served = (model, route) => {
  const depots = new Set(depotsOf(model).map(({ id }) => id));
  return route.visits.filter((id) => !depots.has(id));
};

/** What the routes on show break, in words; nothing if they are feasible. */
export function breaches(run) {
  if (run?.status === "faulty") return ["the problem was edited and has a fault; the routes are from before"];
  if (run?.status === "unjudged") return ["the problem was edited and not judged yet; the routes are from before"];
  return (run?.violations ?? []).map(({ code, message }) => `${code}: ${message}`);
}

/** The latest snapshot of each source, in order, if any with its routes; the policy's own even where a search
 * was ahead. */
export function stages(run) {
  const shots = [run?.policy, ...(run?.snapshots ?? [])].filter(Boolean);
  const whole = shots.filter((shot) => shot.routes);
  const latest = new Map([...shots, ...whole].map((shot) => [shot.source, shot]));
  return Object.keys(SOURCES).flatMap((source) => latest.get(source) ?? []);
}

/** Whoever of the network and the search has no stage, and why: pairs of a source and a reason. */
export function absences(run) {
  const found = new Set(stages(run).map(({ source }) => source));
  if (run?.status !== "done" || found.has("exact")) return [];
  const search = run.polish ? "it found nothing better." : "the method is “Policy only”.";
  return [
    ...(found.has("policy") ? [] : [["policy", run.withoutPolicy ?? "it had no part."]]),
    ...(found.has("search") || found.has("polish") ? [] : [["search", search]]),
  ];
}

// -- colours

const HUES = 7;
const DASHES = ["", "9 4", "2 4"];

/** The colour of a slot, one of seven that colour-blind eyes tell apart; past them, dashes help. */
export const hue = (slot) => `--route-${slot % HUES}`;
export const colour = (slot) => `var(${hue(slot)})`;
export const dash = (slot) => DASHES[Math.floor(slot / HUES) % DASHES.length];

/** Gives each route the slot of the earlier route it shares most customers with, so that colours stay. */
function keepColours(routes, earlier) {
  const slotOf = new Map(earlier.flatMap((route) => route.visits.map((id) => [id, route.slot])));
  const shared = routes.flatMap((route) => {
    const counts = new Map();
    for (const id of route.visits) counts.set(slotOf.get(id), (counts.get(slotOf.get(id)) ?? 0) + 1);
    counts.delete(undefined);
    return [...counts].map(([slot, count]) => ({ route, slot, count }));
  });
  const taken = new Set();
  for (const { route, slot } of shared.sort((a, b) => b.count - a.count)) {
    if (route.slot !== undefined || taken.has(slot)) continue;
    route.slot = slot;
    taken.add(slot);
  }
  let next = 0;
  for (const route of routes.filter((each) => each.slot === undefined)) {
    while (taken.has(next)) next++;
    route.slot = next;
    taken.add(next);
  }
}
