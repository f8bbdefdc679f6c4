/** The map as a file of its own: below a title, above a legend, each element with the looks that the style
 * sheet gave it. Tiles are left out: they are somebody else's pictures. */

import { $, count, s } from "./dom.js";
import { isPickup, variantName } from "./problem.js";
import { breaches, colour } from "./solution.js";
import { state } from "./state.js";
import { length } from "./units.js";

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
const [MARGIN, TOP, LINE] = [14, 52, 22]; // pixels: beside everything, of the title, of a line of the legend

export function picture() {
  const map = $("#map");
  const { width, height } = map.getBoundingClientRect();
  const notes = breaches(state.run).slice(0, 3);
  const keys = legend(width, TOP + height + LINE * (notes.length + 1));
  const whole = TOP + height + LINE * (notes.length + keys.lines) + MARGIN;
  const picture = s(
    "svg",
    { width, height: whole, viewBox: `0 0 ${width} ${whole}`, "font-family": "sans-serif", "font-size": 12 },
    s("rect", { width, height: whole, fill: value("--card") }),
    text(MARGIN, 24, state.model.name, { "font-size": 17, "font-weight": 700 }),
    text(MARGIN, 42, summary(), { fill: value("--soft") }),
    s("svg", { y: TOP, width, height, viewBox: `0 0 ${width} ${height}` }, drawing(map, width, height)),
    notes.map((note, i) =>
      text(MARGIN, TOP + height + LINE * (i + 1) - 4, `Not feasible: ${note}`, {
        fill: value("--bad"),
        "font-weight": 700,
      }),
    ),
    keys.marks,
  );
  // eslint-disable-next-line no-control-regex
  return new XMLSerializer().serializeToString(picture).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "");
}

export async function pixels() {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(picture())}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** A colour of the style sheet, as it is now. */
function value(name) {
  const probe = $("#map");
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = "";
  return found;
}

const text = (x, y, content, looks = {}) => s("text", { x, y, fill: value("--ink"), ...looks }, content);

/** What the picture shows, in a line. */
export function summary() {
  const { model, shown } = state;
  const plan = shown ? [`cost ${length(model, shown.cost, 6)}`, count(shown.routes.length, "route")] : ["not solved"];
  return [variantName(model), count(model.customers.length, "customer"), ...plan].join(" · ");
}

function drawing(map, width, height) {
  const copy = map.cloneNode(true);
  const [originals, copies] = [map.querySelectorAll("*"), copy.querySelectorAll("*")];
  copies.forEach((element, i) => {
    const looks = getComputedStyle(originals[i]);
    element.removeAttribute("style");
    element.removeAttribute("class");
    for (const name of LOOKS) element.setAttribute(name, looks.getPropertyValue(name));
  });
  copy.querySelectorAll("image").forEach((image) => image.remove());
  return [s("rect", { width, height, fill: getComputedStyle(map).backgroundColor }), ...copy.childNodes];
}

/** The marks of the map, and each route's number and length in its colour, in as many lines as they need. */
function legend(width, top) {
  const { model, shown } = state;
  const pickups = model.customers.some((customer) => isPickup(model, customer));
  const entries = [
    { label: "Depot", shape: s("rect", { x: -5, y: -5, width: 10, height: 10, rx: 2, fill: value("--ink") }) },
    { label: pickups ? "Delivery" : "Customer", shape: s("circle", { r: 4.5, fill: value("--soft") }) },
    ...(pickups ? [{ label: "Pickup", shape: s("path", { d: "M0-5L5 0L0 5L-5 0Z", fill: "none", stroke: value("--soft"), "stroke-width": 2 }) }] : []),
    ...(shown?.routes ?? []).map((route) => ({
      label: `${route.number}: ${length(model, route.length)}`,
      shape: s("rect", { x: -7, y: -2, width: 14, height: 4, rx: 2, fill: value(colour(route.slot).slice(4, -1)) }),
    })),
  ];
  let [x, lines] = [MARGIN, 1];
  const marks = entries.map(({ label, shape }) => {
    const room = 30 + 7 * label.length;
    if (x + room > width) [x, lines] = [MARGIN, lines + 1];
    const y = top + LINE * (lines - 1) - 4;
    const mark = s("g", { transform: `translate(${x + 7} ${y - 4})` }, shape);
    const entry = [mark, text(x + 20, y, label)];
    x += room;
    return entry;
  });
  return { marks: marks.flat(), lines };
}
