/** Changing routes by hand: a customer goes to another place, and the judge says at once what that means. */

import { propose } from "./judge.js";
import { length, locations } from "./problem.js";
import { trying } from "./say.js";
import { toDocument } from "./solution.js";
import { change, running, state } from "./state.js";

let moving = false; // until the judge has answered

/** Moves a customer to a route, null for a new one, and to a place in it, by default where it is the smallest
 * detour. Places are counted without the customer. */
export async function move(id, number, place = null) {
  if (running() || moving) return;
  const { model, shown } = state;
  const home = shown.routes.find(({ visits }) => visits.includes(id));
  const others = (visits) => visits.filter((other) => other !== id);
  const routes = shown.routes.map((route) => ({ ...route, visits: others(route.visits) }));
  const goal = routes.find((route) => route.number === number) ?? { ...home, number: null, visits: [] };
  if (!routes.includes(goal)) routes.push(goal);
  goal.visits = goal.visits.toSpliced(place ?? nearest(model, goal, id), 0, id);
  moving = true;
  await trying(() => propose(toDocument(model, { routes }), "edited")).finally(() => (moving = false));
  const now = state.shown?.routes.find(({ visits }) => visits.includes(id));
  change({ pinned: now?.number ?? null });
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
