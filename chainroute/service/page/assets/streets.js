/** Lines along the roads, for routes on show that were measured by a routing server: `lines` of the snapshot,
 * by the number of the route; where the server does not tell them, `straight` says why. */

import * as api from "./api.js";
import { toDocument } from "./problem.js";
import { toDocument as routesDocument } from "./solution.js";
import { change, running, state, subscribe } from "./state.js";

async function follow() {
  const { model, shown } = state;
  if (running() || !model?.roads || !shown?.routes || shown.lines) return;
  const drawn = shown.routes.filter(({ visits }) => visits.length);
  const told = await lines(model, shown, drawn);
  if (state.shown === shown) change({ shown: { ...shown, ...told } });
}

async function lines(model, shown, drawn) {
  try {
    const { features } = await api.geojson(toDocument(model), routesDocument(model, shown), true);
    const ways = features.filter(({ properties }) => properties.kind === "route");
    return { lines: Object.fromEntries(ways.map(({ geometry }, i) => [drawn[i].number, geometry.coordinates])) };
  } catch (error) {
    if (!(error instanceof api.Refusal)) throw error;
    return { lines: {}, straight: error.message };
  }
}

subscribe((keys) => {
  if (keys.has("shown") || keys.has("run")) follow();
});
