/** Changing routes by hand: a customer goes to another place, and the judge says at once what that means. */

import { propose } from "./judge.js";
import { length, locations } from "./problem.js";
import { trying } from "./say.js";
import { served, toDocument } from "./solution.js";
import { change, running, state } from "./state.js";

let queue = Promise.resolve(); // of moves: each waits until the judge has answered the one before

/** Moves a customer to a route, null for a new one, and to a place in it, by default where it is the smallest
 * detour. Places are counted without the customer. */
export function move(id, number, place = null) {
  // Routes may have other numbers when its turn comes: it goes to the customers that are on that route now.
  const goal = number === null ? null : state.shown.routes.find((route) => route.number === number);
  const there = goal && served(state.model, goal);
  queue = queue.catch(() => null).then(() => moveTo(id, there, place));
  return queue;
}

async function moveTo(id, there, place) {
  const { model, shown } = state;
  const home = shown?.routes.find(({ visits }) => visits.includes(id));
  if (running() || !home) return;
  const others = (visits) => visits.filter((other) => other !== id);
  const routes = shown.routes.map((route) => ({ ...route, visits: others(route.visits) }));
  if (there === null) routes.push({ ...home, number: null, visits: [] });
  const goal =
    there === null
      ? routes.at(-1)
      : (routes.find(({ visits }) => visits.some((other) => there.includes(other))) ??
        routes.find((route) => route.number === home.number));
  goal.visits = goal.visits.toSpliced(place ?? nearest(model, goal, id), 0, id);
  for (const route of routes) route.visits = withoutEmptyTrips(model, route);
  await trying(() => propose(toDocument(model, { routes }), "edited"));
  const now = state.shown?.routes.find(({ visits }) => visits.includes(id));
  change({ pinned: now?.number ?? null });
}

/** The visits of a route; of the depots among them only those where it reloads between customers. */
function withoutEmptyTrips(model, route) {
  const customers = new Set(served(model, route));
  const serves = (id) => customers.has(id);
  return route.visits.filter((id, i, all) => serves(id) || (all.slice(0, i).some(serves) && serves(all[i + 1])));
}

/** By so many places within its route. */
export function shift(id, by) {
  const route = state.shown.routes.find(({ visits }) => visits.includes(id));
  const place = route.visits.indexOf(id) + by;
  if (place >= 0 && place < route.visits.length) move(id, route.number, place);
}

/** Where on the route a visit is the smallest detour. */
function nearest(model, { depot, endDepot, visits }, id) {
  const places = new Map(locations(model).map((location) => [location.id, location]));
  const between = (a, b) => (a && b ? length(model, places.get(a), places.get(b)) : 0);
  const stops = [depot, ...visits, endDepot];
  const detours = stops
    .slice(1)
    .map((next, i) => between(stops[i], id) + between(id, next) - between(stops[i], next));
  return detours.indexOf(Math.min(...detours));
}
