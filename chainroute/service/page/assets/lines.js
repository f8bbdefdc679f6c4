/** Routes as lines on the screen: their legs, the direction of travel, and where their number stands. */

const LONG = 34; // pixels of a leg on which an arrow has room
const ARROW = 5; // pixels
const EVERY = 90; // pixels of a street between two arrows
const BADGES = 40; // routes up to which each has its number on the map

const path = (points) =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** The legs between customers, those from the depot and to where it ends, which are drawn lightly, and arrows on all. */
export function legs(depot, visits, end) {
  if (!visits.length) return { inner: "", outer: "", arrows: "" };
  const out = depot ? [depot, visits[0]] : [];
  const back = end ? [visits.at(-1), end] : [];
  return {
    inner: path(visits),
    outer: path(out) + path(back),
    arrows: [out, visits, back].map(arrows).join(""),
  };
}

/** The same of a line along streets, whose bends are too close for an arrow each. */
export const street = (points) => ({ inner: path(points), outer: "", arrows: along(points) });

/** A small arrow in the middle of each leg that is long enough. */
const arrows = (points) =>
  points
    .slice(1)
    .map((end, i) => (length(points[i], end) < LONG ? "" : arrow(points[i], end, 0.5)))
    .join("");

/** Small arrows at even distances along the points. */
function along(points) {
  const found = [];
  let left = EVERY / 2; // to the next arrow
  points.slice(1).forEach((end, i) => {
    const far = length(points[i], end);
    for (; left < far; left += EVERY) found.push(arrow(points[i], end, left / far));
    left -= far;
  });
  return found.join("");
}

const length = ([x, y], [X, Y]) => Math.hypot(X - x, Y - y);
const between = ([x, y], [X, Y], share) => [x + share * (X - x), y + share * (Y - y)];

/** An arrow at that share of the way from one point to another. */
function arrow(start, end, share) {
  const far = length(start, end);
  const [ux, uy] = [(ARROW * (end[0] - start[0])) / far, (ARROW * (end[1] - start[1])) / far];
  const [x, y] = between(start, end, share);
  const [tipX, tipY] = [x + ux, y + uy];
  return path([
    [tipX - 2 * ux - uy, tipY - 2 * uy + ux],
    [tipX, tipY],
    [tipX - 2 * ux + uy, tipY - 2 * uy - ux],
  ]);
}

/** The point at that share of a line's length. */
function pointAt(points, share) {
  const lengths = points.slice(1).map((end, i) => length(points[i], end));
  let left = share * lengths.reduce((sum, far) => sum + far, 0);
  const leg = lengths.findIndex((far) => (left -= far) < 0);
  return leg < 0 ? points.at(-1) : between(points[leg], points[leg + 1], 1 + left / lengths[leg]);
}

/** Where each route's number stands, by its number: on its way out, one beside the other. */
export function badges(routes) {
  if (routes.length > BADGES) return new Map();
  const taken = [];
  const places = routes.map(({ number, depot, visits, line }) => {
    const [first, second] = visits;
    const from = depot ?? second ?? first;
    const at = (share) => (line ? pointAt(line, share / (visits.length + 1)) : between(from, first, share));
    const free = ([x, y]) => taken.every(([X, Y]) => Math.hypot(x - X, y - Y) > 18);
    const place = [0.6, 0.75, 0.45, 0.9, 0.3].map(at).find(free) ?? at(0.6);
    taken.push(place);
    return [number, place];
  });
  return new Map(places);
}
