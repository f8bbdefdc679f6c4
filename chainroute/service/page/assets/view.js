/** The part of the plane that the map shows, and between the two. */

// pixels per unit, now and where all is seen, the plane's point at the centre, and whether it is as `fit` left it
export const view = { scale: 1, whole: 1, x: 0, y: 0, width: 0, height: 0, fitted: true };

const FARTHEST = 20; // times smaller than where all is seen
const NEAREST = 2000; // times larger
const MARGIN = 44; // pixels kept free around everything

export const toScreen = ([x, y]) => [
  view.width / 2 + (x - view.x) * view.scale,
  view.height / 2 - (y - view.y) * view.scale,
];
export const toPlane = ([px, py]) => [
  view.x + (px - view.width / 2) / view.scale,
  view.y - (py - view.height / 2) / view.scale,
];

export const centre = () => [view.width / 2, view.height / 2];

/** Shows all points; about a lone one there is `room` on each side. */
export function fitTo(points, room) {
  const [xs, ys] = [points.map((p) => p[0]), points.map((p) => p[1])];
  if (points.length < 2) {
    xs.push(...xs.flatMap((x) => [x - room, x + room]));
    ys.push(...ys.flatMap((y) => [y - room, y + room]));
  }
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const within = (size) => Math.max(size - 2 * MARGIN, 40);
  view.x = (left + right) / 2;
  view.y = (low + high) / 2;
  const scale = Math.min(within(view.width) / (right - left), within(view.height) / (high - low));
  view.scale = view.whole = Number.isFinite(scale) ? scale : 4;
  view.fitted = true;
}

/** Zooms by a factor about a point of the screen. */
export function zoomAbout(factor, at) {
  const before = toPlane(at);
  view.scale = Math.min(Math.max(view.scale * factor, view.whole / FARTHEST), view.whole * NEAREST);
  const after = toPlane(at);
  view.x += before[0] - after[0];
  view.y += before[1] - after[1];
  view.fitted = false;
}

export function shift(dx, dy) {
  view.x -= dx / view.scale;
  view.y += dy / view.scale;
  view.fitted = false;
}
