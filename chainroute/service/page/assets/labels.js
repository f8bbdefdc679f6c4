/** Names on the map where there is room for them; on the route looked at, the order of the visits. */

import { clipped, s } from "./dom.js";
import { depotsOf, locations } from "./problem.js";
import { state } from "./state.js";
import { toScreen, view } from "./view.js";

const LABELLED = 60; // locations up to which each is named

/** The labels, given the places of the locations, the radius of their marks and the boxes that are taken. */
export function labels(spots, radius, taken) {
  const { model, shown, near, hover, pinned, selected } = state;
  const route = shown?.routes.find(({ number }) => number === (hover ?? pinned));
  const order = new Map(route?.visits.map((id, i) => [id, i + 1]));
  const all = locations(model).filter(({ id }) => spots.has(id));
  const few = all.length <= LABELLED;
  const wanted = ({ id }) => id === selected || id === near;
  const others = all.filter((location) => {
    if (wanted(location)) return false;
    return route ? order.has(location.id) : few || depotsOf(model).includes(location);
  });
  const marks = few ? all.map(({ id }) => toScreen(spots.get(id))) : [];
  const boxes = [...taken, ...marks].map(([x, y]) => [x - 5, x + 5, y - 5, y + 5]);
  const free = ([l, r, t, b]) => !boxes.some(([L, R, T, B]) => l < R && L < r && t < B && T < b);
  return [...all.filter(wanted), ...others].flatMap((location) => {
    const number = order.get(location.id);
    const text = inWords(location.name, number, few || wanted(location));
    const [x, y] = toScreen(spots.get(location.id));
    if (x < 0 || x > view.width) return [];
    const half = 3.2 * text.length + 2;
    const gap = depotsOf(model).includes(location) ? 12 : radius + 5;
    const middle = Math.max(half, Math.min(x, view.width - half)); // not beyond the edge
    const box = (top) => [middle - half, middle + half, top, top + 12];
    const [above, below] = [box(y - gap - 10), box(y + gap)];
    const place = [above, below].find(free) ?? (wanted(location) ? above : null);
    if (!place) return [];
    boxes.push(place);
    return [s("text", { x: middle, y: place[2] + 10, class: number ? "stop" : null }, text)];
  });
}

const LONGEST = 24; // characters of a name on the map

function inWords(name, number, named) {
  const short = clipped(name, LONGEST);
  if (!number) return short;
  return named ? `${number} · ${short}` : String(number);
}
