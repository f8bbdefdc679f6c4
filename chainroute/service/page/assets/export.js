/** Files for the user: the problem, the routes, and the map as a picture. */

import { $ } from "./dom.js";
import { beyond } from "./fleet.js";
import { geoText, onGlobe } from "./geojson.js";
import { settled } from "./judge.js";
import { toAddress } from "./link.js";
import { picture, pixels } from "./picture.js";
import { depotsOf, locations, toDocument, variantName } from "./problem.js";
import { say } from "./say.js";
import { breaches, remaining, vehicleOf } from "./solution.js";
import { state } from "./state.js";

const KINDS = {
  problem: { ending: ".json", type: "application/json", make: () => pretty(toDocument(state.model)) },
  json: { ending: ".solution.json", type: "application/json", make: () => pretty(solutionDocument()) },
  sol: { ending: ".sol", type: "text/plain", make: solText },
  geojson: { ending: ".geojson", type: "application/geo+json", make: geoText },
  svg: { ending: ".svg", type: "image/svg+xml", make: picture },
  png: { ending: ".png", type: "image/png", make: pixels },
};
const OF_ROUTES = ["json", "sol", "geojson", "print"];

/** Whether there is anything to export in that form. */
export function possible(kind) {
  if (kind === "geojson" && !(state.model && onGlobe(state.model))) return false;
  if (kind === "sol" && state.model && beyondSol(state.model)) return false;
  return OF_ROUTES.includes(kind) ? Boolean(state.shown) : Boolean(state.model);
}

/** Whether routes say more than a .sol can hold. */
const beyondSol = (model) =>
  beyond(model).some((extra) => ["mixed fleet", "other end", "several trips"].includes(extra));

/** Makes what the button says, once the judge has seen the latest edit. */
export async function save(kind) {
  await settled();
  if (kind === "print") return print();
  if (kind === "link") return share();
  const { ending, type, make } = KINDS[kind];
  const url = URL.createObjectURL(new Blob([await make()], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${state.model.name.replace(/[^\w.-]+/g, "-") || "problem"}${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  const [breach] = breaches(state.run);
  say(breach ? `Saved ${link.download}, though not feasible: ${breach}` : `Saved ${link.download}.`);
}

/** Shows the address of the work, and copies it where the browser allows that. */
async function share() {
  const address = await toAddress();
  if (!address) return say("This is too large for a link: save the JSON and send that.");
  $("#link-label").hidden = false;
  $("#link").value = address;
  $("#link").select();
  const copied = await navigator.clipboard?.writeText(address).then(
    () => true,
    () => false,
  );
  const [breach] = breaches(state.run);
  const warning = breach ? ` Mind that the routes are not feasible: ${breach}` : "";
  say(`${copied ? "The link is copied" : "Copy the link"}: it holds problem and routes.${warning}`);
}

const pretty = (value) => `${JSON.stringify(value, null, 2)}\n`;

/** As docs/formats.md has it, with the facts of each route and stop; and with the problem, so that the page
 * can open both from it. */
function solutionDocument() {
  const { model, shown, run } = state;
  const names = new Map(locations(model).map((location) => [location.id, location.name]));
  const routes = remaining(model, shown.routes).map((route) => ({
    depot: names.get(route.depot),
    ...vehicleOf(model, route),
    customers: route.visits.map((id) => names.get(id)),
    ...{ length: route.length, start: route.start, end: route.end, waiting: route.waiting, max_load: route.load },
    stops: route.stops.map((stop) => ({
      customer: names.get(stop.id),
      arrival: stop.arrival,
      waiting: stop.start - stop.arrival,
      start: stop.start,
      departure: stop.departure,
      load: stop.load,
      distance: stop.distance,
    })),
  }));
  const broken = breaches(run);
  return {
    problem: model.name,
    variant: variantName(model),
    cost: shown.cost,
    ...(shown.parts ? { parts: shown.parts, left_out: shown.leftOut } : {}),
    feasible: !broken.length,
    ...(broken.length ? { violations: broken } : {}),
    routes,
    problem_document: toDocument(model),
    ...(model.roads ? { roads: true } : {}),
  };
}

/** CVRPLIB's form: locations by number, depots first; of several depots, a comment names each route's. */
function solText() {
  const { model, shown, run } = state;
  const number = new Map(locations(model).map((location, i) => [location.id, i]));
  const routes = remaining(model, shown.routes);
  const lines = routes.map(
    (route, r) => `Route #${r + 1}: ${route.visits.map((id) => number.get(id)).join(" ")}`,
  );
  lines.push(`Cost ${shown.cost}`);
  if (depotsOf(model).length > 1)
    lines.push(`# Depots: ${routes.map((route) => number.get(route.depot)).join(" ")}`);
  lines.push(...breaches(run).map((breach) => `# Not feasible: ${breach}`));
  return `${lines.join("\n")}\n`;
}
