/** Where locations lie on the plane of the map: their coordinates, projected from the globe where they are
 * in degrees, or laid out by their distances where there are none. */

import { locations } from "./problem.js";

const RAD = Math.PI / 180;

/** Mercator in degrees, which the tiles of map servers use. */
export const project = (model, x, y) =>
  model.globe ? [x, Math.log(Math.tan(Math.PI / 4 + (y * RAD) / 2)) / RAD] : [x, y];

export const unproject = (model, x, y) =>
  model.globe ? [x, (2 * Math.atan(Math.exp(y * RAD)) - Math.PI / 2) / RAD] : [x, y];

/** The place of each location by its id; those whose coordinates are no numbers are left out. */
export function places(model) {
  const all = locations(model);
  if (model.distances && all.every((location) => location.x === null)) return scaled(model, all);
  const drawn = all.filter(
    ({ x, y }) => Number.isFinite(x) && Number.isFinite(y) && x !== null && y !== null,
  );
  return new Map(drawn.map(({ id, x, y }) => [id, project(model, x, y)]));
}

let last = { matrix: null, coords: [] };

/** Classical multidimensional scaling of the whole matrix, by power iteration. */
function scaled({ distances }, all) {
  if (last.matrix !== distances) {
    const n = distances.length;
    const square = distances.map((row, i) => row.map((d, j) => ((d + distances[j][i]) / 2) ** 2));
    const means = square.map((row) => row.reduce((sum, d) => sum + d, 0) / n);
    const mean = means.reduce((sum, d) => sum + d, 0) / n;
    const gram = square.map((row, i) => row.map((d, j) => -(d - means[i] - means[j] + mean) / 2));
    const first = strongest(gram, []);
    const second = strongest(gram, first);
    last = { matrix: distances, coords: first.map((x, i) => [x, second[i]]) };
  }
  return new Map(all.map(({ id, row }) => [id, last.coords[row]]));
}

/** The leading eigenvector at right angles to another, as long as the root of its eigenvalue. */
function strongest(matrix, other) {
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const norm = dot(other, other) || 1;
  let vector = matrix.map((_, i) => Math.sin(i + 1));
  let value = 0;
  for (let round = 0; round < 40; round++) {
    const share = other.length ? dot(vector, other) / norm : 0;
    const free = other.length ? vector.map((v, i) => v - share * other[i]) : vector;
    const image = matrix.map((row) => dot(row, free));
    value = Math.sqrt(dot(image, image));
    vector = image.map((v) => v / (value || 1));
  }
  return vector.map((v) => v * Math.sqrt(value));
}
