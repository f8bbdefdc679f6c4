/** Routes as lines on the screen: their legs, the direction of travel, and where their number stands. */

const LONG = 34; // pixels of a leg on which an arrow has room
const ARROW = 5; // pixels
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

/** A small arrow in the middle of each leg that is long enough. */
function arrows(points) {
  return points
    .slice(1)
    .map(([x, y], i) => {
      const [dx, dy] = [x - points[i][0], y - points[i][1]];
      const far = Math.hypot(dx, dy);
      if (far < LONG) return "";
      const [ux, uy] = [(ARROW * dx) / far, (ARROW * dy) / far];
      const [tipX, tipY] = [x - dx / 2 + ux, y - dy / 2 + uy];
      return path([
        [tipX - 2 * ux - uy, tipY - 2 * uy + ux],
        [tipX, tipY],
        [tipX - 2 * ux + uy, tipY - 2 * uy - ux],
      ]);
    })
    .join("");
}

/** Where each route's number stands, by its number: on its way out, one beside the other. */
export function badges(routes) {
  if (routes.length > BADGES) return new Map();
  const taken = [];
  const places = routes.map(({ number, depot, visits }) => {
    const [first, second] = visits;
    const from = depot ?? second ?? first;
    const at = (share) => [from[0] + share * (first[0] - from[0]), from[1] + share * (first[1] - from[1])];
    const free = ([x, y]) => taken.every(([X, Y]) => Math.hypot(x - X, y - Y) > 18);
    const place = [0.6, 0.75, 0.45, 0.9, 0.3].map(at).find(free) ?? at(0.6);
    taken.push(place);
    return [number, place];
  });
  return new Map(places);
}
