/** The map: locations and routes as SVG, in a view that pans and zooms. */

import { $, s, show, ticks } from "./dom.js";
import { startsAnywhere } from "./fleet.js";
import { labels } from "./labels.js";
import { places, project, unproject } from "./layout.js";
import { badges, legs, street } from "./lines.js";
import { depotsOf, isPickup } from "./problem.js";
import { colour, dash } from "./solution.js";
import { state, subscribe } from "./state.js";
import { drawTiles } from "./tiles.js";
import { centre, fitTo, shift, toPlane, toScreen, view, zoomAbout } from "./view.js";

const svg = $("#map");
const [tileLayer, gridLayer, againstLayer, routeLayer, labelLayer, placeLayer] = [
  "tiles",
  "grid",
  "against",
  "routes",
  "labels",
  "places",
].map((name) => svg.appendChild(s("g", { class: name })));

let spots = new Map(); // id -> place on the plane
let drawnLast = null; // the snapshot
let numbers = new Map(); // where the routes' numbers stand, by route

// -- the view

const ROOM = { plane: 50, globe: 0.1 }; // units, or degrees, on each side of a lone depot

/** Shows everything. */
export function fit() {
  fitTo([...spots.values()], state.model.globe ? ROOM.globe : ROOM.plane);
  draw();
}

/** Zooms by a factor about a point of the screen, by default the centre. */
export function zoom(factor, at = centre()) {
  zoomAbout(factor, at);
  draw();
}

export function pan(dx, dy) {
  shift(dx, dy);
  draw();
}

// -- between the screen and the problem

/** Where those of the locations that have a place are on the screen. */
export const onScreen = (ids) => ids.filter((id) => spots.has(id)).map((id) => toScreen(spots.get(id)));

/** Whether a location is in the left half. */
export const isLeft = (id) => onScreen([id]).some(([x]) => x < view.width / 2);

/** The id of the nearest location within reach of the pointer. */
export function nearest([px, py], reach) {
  let [best, found] = [reach, null];
  for (const [id, spot] of spots) {
    const [x, y] = toScreen(spot);
    const gap = Math.hypot(x - px, y - py);
    if (gap < best) [best, found] = [gap, id];
  }
  return found;
}

/** The point of the screen in the user's coordinates, no finer than a pixel. */
export function coordinates(point) {
  const digits = Math.max(0, Math.ceil(Math.log10(view.scale)));
  const [x, y] = unproject(state.model, ...toPlane(point));
  return { x: Number(x.toFixed(digits)), y: Number(y.toFixed(digits)) };
}

new ResizeObserver(([{ contentRect }]) => {
  Object.assign(view, { width: contentRect.width, height: contentRect.height });
  svg.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
  if (state.model) view.fitted ? fit() : draw();
}).observe(svg);

// -- drawing

function draw() {
  drawGrid();
  drawTiles(tileLayer);
  drawPlan();
}

function drawPlan() {
  routeLayer.classList.toggle("fresh", drawnLast !== state.shown); // new routes fade in, others stay
  drawnLast = state.shown;
  drawRoutes();
  drawPlaces();
  highlight();
}

function drawGrid() {
  const { model } = state;
  const [left, top] = unproject(model, ...toPlane([0, 0]));
  const [right, bottom] = unproject(model, ...toPlane([view.width, view.height]));
  const unit = model.globe ? "°" : "";
  const xs = ticks(left, right, Math.max(2, view.width / 110));
  const ys = ticks(bottom, top, Math.max(2, view.height / 90));
  const hidden = model.distances && model.customers[0]?.x === null; // laid out: the axes mean nothing
  gridLayer.replaceChildren(
    ...(hidden ? [] : xs).flatMap((value) => {
      const [x] = toScreen(project(model, value, 0));
      const label = s("text", { x: x + 3, y: view.height - 5 }, show(value) + unit);
      return [s("line", { x1: x, x2: x, y1: 0, y2: view.height }), label];
    }),
    ...(hidden ? [] : ys).flatMap((value) => {
      const [, y] = toScreen(project(model, 0, value));
      const label = s("text", { x: 4, y: y - 3 }, show(value) + unit);
      return [s("line", { x1: 0, x2: view.width, y1: y, y2: y }), label];
    }),
  );
}

/** The line of a route along streets on the screen, where a routing server has told it. */
const lineOf = ({ lines }, { number }) =>
  lines?.[number]?.map(([lon, lat]) => toScreen(project(state.model, lon, lat)));

/** The legs of a route of which every end that has a place is drawn. */
function legsOf(shot, route) {
  const { depot, visits, endDepot } = route;
  const line = lineOf(shot, route);
  if (line) return street(line);
  const begin = startsAnywhere(state.model, route) ? null : onScreen([depot])[0];
  return legs(begin, onScreen(visits), endDepot === null ? null : onScreen([endDepot])[0]);
}

function drawRoutes() {
  const { shown, against } = state;
  againstLayer.replaceChildren(
    ...(against?.routes ?? []).map((route) => {
      const { inner, outer } = legsOf(against, route);
      return s("path", { d: inner + outer });
    }),
  );
  const routes = shown?.routes ?? [];
  const drawn = routes
    .map((route) => ({
      number: route.number,
      depot: startsAnywhere(state.model, route) ? null : onScreen([route.depot])[0],
      visits: onScreen(route.visits),
      line: lineOf(shown, route),
    }))
    .filter(({ visits }) => visits.length);
  numbers = badges(drawn);
  routeLayer.replaceChildren(
    ...routes.map((route) => {
      const { inner, outer, arrows } = legsOf(shown, route);
      const group = s(
        "g",
        { class: "route", "data-route": route.number },
        s("path", { class: "hit", d: inner + outer }),
        s("path", { class: "outer", d: outer }),
        s("path", { class: "inner", d: inner, "stroke-dasharray": dash(route.slot) || null }),
        s("path", { class: "arrows", d: arrows }),
        numbers.has(route.number) ? badge(route.number) : null,
      );
      group.style.color = colour(route.slot);
      return group;
    }),
  );
}

function badge(number) {
  const [x, y] = numbers.get(number);
  return s(
    "g",
    { class: "badge-mark", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
    s("circle", { r: 8 }),
    s("text", { y: 3.5, "text-anchor": "middle" }, String(number)),
  );
}

/** By size of the problem, so that a thousand customers stay apart. */
const radius = () => Math.max(2.2, Math.min(5.5, 60 / Math.sqrt(state.model.customers.length + 1)));

function drawPlaces() {
  const { model, shown } = state;
  const slots = new Map((shown?.routes ?? []).flatMap((route) => route.visits.map((id) => [id, route.slot])));
  const r = radius();
  const marks = model.customers
    .filter(({ id }) => spots.has(id))
    .map((customer) => {
      const [x, y] = toScreen(spots.get(customer.id));
      const id = customer.id;
      const d = r * 1.35;
      const mark = isPickup(model, customer)
        ? s("path", {
            class: "customer pickup",
            "data-id": id,
            d: `M${x} ${y - d}L${x + d} ${y}L${x} ${y + d}L${x - d} ${y}Z`,
          })
        : s("circle", { class: "customer", "data-id": id, cx: x, cy: y, r });
      if (slots.has(id)) mark.style.color = colour(slots.get(id));
      return mark;
    });
  for (const depot of depotsOf(model).filter(({ id }) => spots.has(id))) {
    const [x, y] = toScreen(spots.get(depot.id));
    marks.push(
      s("rect", { class: "depot", "data-id": depot.id, x: x - 8, y: y - 8, width: 16, height: 16, rx: 4 }),
    );
    marks.push(s("rect", { class: "core", x: x - 3, y: y - 3, width: 6, height: 6, rx: 1 }));
  }
  placeLayer.replaceChildren(...marks);
}

/** What is looked at or chosen stands out, without drawing the rest again. */
function highlight() {
  const { shown, hover, pinned, selected } = state;
  const route = shown?.routes.find(({ number }) => number === (hover ?? pinned));
  const visited = new Set(route?.visits);
  svg.classList.toggle("focusing", Boolean(route));
  for (const group of routeLayer.children)
    group.classList.toggle("on", Number(group.dataset.route) === route?.number);
  for (const mark of placeLayer.querySelectorAll("[data-id]")) {
    const id = Number(mark.dataset.id);
    mark.classList.toggle("chosen", id === selected);
    mark.classList.toggle("dim", Boolean(route) && !visited.has(id) && mark.matches(".customer"));
  }
  labelLayer.replaceChildren(...labels(spots, radius(), [...numbers.values()]));
}

subscribe((keys) => {
  const changed = (...names) => names.some((name) => keys.has(name));
  if (!state.model) return;
  if (changed("model")) spots = places(state.model);
  if (changed("opened")) fit();
  else if (changed("model")) draw();
  else if (changed("shown", "against")) drawPlan();
  else if (changed("near", "hover", "pinned", "selected")) highlight();
});
