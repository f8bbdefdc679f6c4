/** The map as a file of its own: below a title, above a legend, each element with the looks that the style
 * sheet gave it. Tiles are left out: they are somebody else's pictures. */

import { $, clipped, count, s } from "./dom.js";
import { isPickup, variantName } from "./problem.js";
import { breaches, hue } from "./solution.js";
import { state } from "./state.js";
import { cost as price, length } from "./units.js";

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
// eslint-disable-next-line no-control-regex
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g; // characters that XML cannot hold
const TITLE = 10.5; // pixels of a character of the title
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
    text(MARGIN, 24, clipped(state.model.name, Math.floor((width - 2 * MARGIN) / TITLE)), { "font-size": 17, "font-weight": 700 }),
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
  return new XMLSerializer().serializeToString(picture).replace(UNWRITABLE, "");
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
  const cost = shown ? `cost ${price(model, shown.cost, 6)}` : "not solved";
  const routes = shown ? [count(shown.routes.length, "route")] : [];
  return [variantName(model), count(model.customers.length, "customer"), cost, ...routes].join(" · ");
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
  const [ink, soft] = [value("--ink"), value("--soft")];
  const entries = [
    ["Depot", "M-5-5h10v10h-10Z", { fill: ink }],
    [pickups ? "Delivery" : "Customer", "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0", { fill: soft }],
    ...(pickups ? [["Pickup", "M0-5L5 0L0 5L-5 0Z", { fill: "none", stroke: soft, "stroke-width": 2 }]] : []),
    ...(shown?.routes ?? []).map(({ number, slot, length: way }) => [
      `${number}: ${length(model, way)}`,
      "M-7-2h14v4h-14Z",
      { fill: value(hue(slot)) },
    ]),
  ];
  let [x, lines] = [MARGIN, 1];
  const marks = entries.map(([label, d, looks]) => {
    const room = 30 + 7 * label.length;
    if (x + room > width) [x, lines] = [MARGIN, lines + 1];
    const y = top + LINE * (lines - 1) - 4;
    const mark = s("path", { transform: `translate(${x + 7} ${y - 4})`, d, ...looks });
    const entry = [mark, text(x + 20, y, label)];
    x += room;
    return entry;
  });
  return { marks: marks.flat(), lines };
}
