/** Files for the user: the problem, the routes, and the map as a picture. */

import { $ } from "./dom.js";
import { depotsOf, locations, toDocument, variantName } from "./problem.js";
import { state } from "./state.js";

const KINDS = {
  problem: { ending: ".json", type: "application/json", make: () => pretty(toDocument(state.model)) },
  json: { ending: ".solution.json", type: "application/json", make: () => pretty(solutionDocument()) },
  sol: { ending: ".sol", type: "text/plain", make: solText },
  svg: { ending: ".svg", type: "image/svg+xml", make: picture },
  png: { ending: ".png", type: "image/png", make: pixels },
};

/** Whether there is anything to export in that form. */
export const possible = (kind) =>
  ["json", "sol"].includes(kind) ? Boolean(state.shown) : Boolean(state.model);

export async function save(kind) {
  const { ending, type, make } = KINDS[kind];
  const content = await make();
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${state.model.name.replace(/[^\w.-]+/g, "-") || "problem"}${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const pretty = (value) => `${JSON.stringify(value, null, 2)}\n`;

/** As docs/formats.md has it, with the facts of each route and stop. */
function solutionDocument() {
  const { model, shown } = state;
  const names = new Map(locations(model).map((location) => [location.id, location.name]));
  const routes = shown.routes.map(({ depot, visits, length, start, end, waiting, load, stops }) => ({
    depot: names.get(depot),
    customers: visits.map((id) => names.get(id)),
    ...{ length, start, end, waiting, max_load: load },
    stops: stops.map((stop) => ({
      customer: names.get(stop.id),
      arrival: stop.arrival,
      waiting: stop.start - stop.arrival,
      start: stop.start,
      departure: stop.departure,
      load: stop.load,
    })),
  }));
  return { problem: model.name, variant: variantName(model), cost: shown.cost, routes };
}

/** CVRPLIB's form: locations by number, depots first; of several depots, a comment names each route's. */
function solText() {
  const { model, shown } = state;
  const number = new Map(locations(model).map((location, i) => [location.id, i]));
  const lines = shown.routes.map(
    (route, r) => `Route #${r + 1}: ${route.visits.map((id) => number.get(id)).join(" ")}`,
  );
  lines.push(`Cost ${shown.cost}`);
  if (depotsOf(model).length > 1)
    lines.push(`# Depots: ${shown.routes.map((route) => number.get(route.depot)).join(" ")}`);
  return `${lines.join("\n")}\n`;
}

const LOOKS = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "stroke-opacity",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "paint-order",
];

/** The map as a file of its own: each element with the looks that the style sheet gave it, tiles left out. */
function picture() {
  const map = $("#map");
  const copy = map.cloneNode(true);
  const [originals, copies] = [map.querySelectorAll("*"), copy.querySelectorAll("*")];
  copies.forEach((element, i) => {
    const looks = getComputedStyle(originals[i]);
    element.removeAttribute("style");
    element.removeAttribute("class");
    for (const name of LOOKS) element.setAttribute(name, looks.getPropertyValue(name));
  });
  copy.querySelectorAll("image").forEach((image) => image.remove());
  const { width, height } = map.getBoundingClientRect();
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  Object.entries({ width, height, fill: getComputedStyle(map).backgroundColor }).forEach(([k, v]) =>
    back.setAttribute(k, v),
  );
  copy.prepend(back);
  [...copy.attributes]
    .filter(({ name }) => name !== "viewBox")
    .forEach(({ name }) => copy.removeAttribute(name));
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new XMLSerializer().serializeToString(copy);
}

async function pixels() {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(picture())}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
