/** The map: locations and routes as SVG, in a view that pans and zooms. */

import { $, s, show, ticks } from "./dom.js";
import { places, project, unproject } from "./layout.js";
import { depotsOf, isPickup, locations } from "./problem.js";
import { colour, dash } from "./solution.js";
import { state, subscribe } from "./state.js";

const LABELLED = 60; // locations up to which each is named
const FARTHEST = 20; // times smaller than where all is seen
const NEAREST = 2000; // times larger
const MARGIN = 44; // pixels kept free around everything

const svg = $("#map");
const [tileLayer, gridLayer, againstLayer, routeLayer, labelLayer, placeLayer] = [
  "tiles",
  "grid",
  "against",
  "routes",
  "labels",
  "places",
].map((name) => svg.appendChild(s("g", { class: name })));

// pixels per unit, now and where all is seen, the plane's point at the centre, and whether it is as `fit` left it
const view = { scale: 1, whole: 1, x: 0, y: 0, width: 0, height: 0, fitted: true };
let spots = new Map(); // id -> place on the plane
let drawnLast = null; // the snapshot

const toScreen = ([x, y]) => [
  view.width / 2 + (x - view.x) * view.scale,
  view.height / 2 - (y - view.y) * view.scale,
];
const toPlane = ([px, py]) => [
  view.x + (px - view.width / 2) / view.scale,
  view.y - (py - view.height / 2) / view.scale,
];

// -- the view

/** Shows everything. */
export function fit() {
  const all = [...spots.values()];
  const [xs, ys] = [all.map((p) => p[0]), all.map((p) => p[1])];
  if (all.length < 2) {
    xs.push(...xs.flatMap((x) => [x - 50, x + 50])); // a lone depot has a plane of 100 by 100 about it
    ys.push(...ys.flatMap((y) => [y - 50, y + 50]));
  }
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const room = (size) => Math.max(size - 2 * MARGIN, 40);
  view.x = (left + right) / 2;
  view.y = (low + high) / 2;
  const scale = Math.min(room(view.width) / (right - left), room(view.height) / (high - low));
  view.scale = view.whole = Number.isFinite(scale) ? scale : 4;
  view.fitted = true;
  draw();
}

/** Zooms by a factor about a point of the screen, by default the centre. */
export function zoom(factor, at = centre()) {
  const before = toPlane(at);
  view.scale = Math.min(Math.max(view.scale * factor, view.whole / FARTHEST), view.whole * NEAREST);
  const after = toPlane(at);
  view.x += before[0] - after[0];
  view.y += before[1] - after[1];
  view.fitted = false;
  draw();
}

export function pan(dx, dy) {
  view.x -= dx / view.scale;
  view.y += dy / view.scale;
  view.fitted = false;
  draw();
}

// -- between the screen and the problem

export const centre = () => [view.width / 2, view.height / 2];

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
  drawTiles();
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

/** Pictures of the user's own tile server under a problem in degrees; without one, nothing is fetched. */
function drawTiles() {
  const template = localStorage.getItem("tiles");
  tileLayer.replaceChildren();
  if (!template || !state.model.globe) return;
  const level = Math.min(19, Math.max(0, Math.round(Math.log2((view.scale * 360) / 256))));
  const size = 360 / 2 ** level; // degrees on the plane
  const [left, top] = toPlane([0, 0]);
  const [right, bottom] = toPlane([view.width, view.height]);
  const index = (degrees) => Math.min(2 ** level - 1, Math.max(0, Math.floor((180 + degrees) / size)));
  for (let x = index(left); x <= index(right); x++) {
    for (let y = index(-top); y <= index(-bottom); y++) {
      const href = template.replace("{z}", level).replace("{x}", x).replace("{y}", y);
      const [px, py] = toScreen([x * size - 180, 180 - y * size]);
      const side = size * view.scale + 0.5;
      tileLayer.append(s("image", { href, x: px, y: py, width: side, height: side }));
    }
  }
}

const line = (points) =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** The legs between customers, and those from and to the depot, which are drawn lightly. */
function paths(route) {
  const visits = onScreen(route.visits);
  const [depot] = onScreen([route.depot]);
  if (!visits.length) return { inner: "", outer: "" };
  const back = depot && !state.model.open ? line([visits.at(-1), depot]) : "";
  return { inner: line(visits), outer: (depot ? line([depot, visits[0]]) : "") + back };
}

function drawRoutes() {
  const { shown, against } = state;
  againstLayer.replaceChildren(
    ...(against?.routes ?? []).map((route) => {
      const { inner, outer } = paths(route);
      return s("path", { d: inner + outer });
    }),
  );
  routeLayer.replaceChildren(
    ...(shown?.routes ?? []).map((route) => {
      const { inner, outer } = paths(route);
      const group = s(
        "g",
        { class: "route", "data-route": route.number },
        s("path", { class: "hit", d: inner + outer }),
        s("path", { class: "outer", d: outer }),
        s("path", { class: "inner", d: inner, "stroke-dasharray": dash(route.slot) || null }),
      );
      group.style.color = colour(route.slot);
      return group;
    }),
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

/** What is looked at or chosen stands out, without drawing the rest anew. */
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
  drawLabels();
}

/** Names where there is room for them; on the route looked at, the order of the visits. */
function drawLabels() {
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
  const taken = marks.map(([x, y]) => [x - 5, x + 5, y - 5, y + 5]);
  const texts = [...all.filter(wanted), ...others].map((location) => {
    const number = order.get(location.id);
    const text = !number
      ? location.name
      : few || wanted(location)
        ? `${number} · ${location.name}`
        : String(number);
    const [x, y] = toScreen(spots.get(location.id));
    if (x < 0 || x > view.width) return null;
    const half = 3.2 * text.length + 2;
    const gap = depotsOf(model).includes(location) ? 12 : radius() + 5;
    const middle = Math.max(half, Math.min(x, view.width - half)); // not beyond the edge
    const box = (top) => [middle - half, middle + half, top, top + 12];
    const free = ([l, r, t, b]) => !taken.some(([L, R, T, B]) => l < R && L < r && t < B && T < b);
    const place =
      [box(y - gap - 10), box(y + gap)].find(free) ?? (wanted(location) ? box(y - gap - 10) : null);
    if (!place) return null;
    taken.push(place);
    return s("text", { x: middle, y: place[2] + 10, class: number ? "stop" : null }, text);
  });
  labelLayer.replaceChildren(...texts.filter(Boolean));
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
