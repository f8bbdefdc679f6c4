/** Pictures of the user's own tile server under a problem in degrees, and whose they are; without a server
 * nothing is fetched. */

import { $, s } from "./dom.js";
import { state } from "./state.js";
import { toPlane, toScreen, view } from "./view.js";

const FINEST = 19; // level of the smallest tiles that servers have

/** Draws them into their layer of the map. */
export function drawTiles(layer) {
  const template = localStorage.getItem("tiles");
  const shown = Boolean(template && state.model.globe);
  const credit = $("#credit");
  credit.hidden = !shown;
  credit.textContent = shown ? localStorage.getItem("credit") || `Tiles: ${hostOf(template)}` : "";
  layer.replaceChildren(...(shown ? tiles(template) : []));
}

const hostOf = (template) => template.match(/^\w+:\/\/([^/]+)/)?.[1] ?? template;

function* tiles(template) {
  const level = Math.min(FINEST, Math.max(0, Math.round(Math.log2((view.scale * 360) / 256))));
  const size = 360 / 2 ** level; // degrees on the plane
  const [left, top] = toPlane([0, 0]);
  const [right, bottom] = toPlane([view.width, view.height]);
  const index = (degrees) => Math.min(2 ** level - 1, Math.max(0, Math.floor((180 + degrees) / size)));
  for (let x = index(left); x <= index(right); x++) {
    for (let y = index(-top); y <= index(-bottom); y++) {
      const href = template.replace("{z}", level).replace("{x}", x).replace("{y}", y);
      const [px, py] = toScreen([x * size - 180, 180 - y * size]);
      const side = size * view.scale + 0.5;
      yield s("image", { href, x: px, y: py, width: side, height: side });
    }
  }
}
