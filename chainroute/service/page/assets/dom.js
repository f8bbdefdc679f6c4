/** Small helpers to build and find elements. */

export const $ = (selector, root = document) => root.querySelector(selector);

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: attributes by name, handlers as functions under `on...`, children as nodes or text. */
export function h(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise. */
export function s(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A number for people: at most `digits` significant digits, thousands grouped. */
export function show(value, digits = 5) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const whole = Math.abs(value) >= 10 ** (digits - 1);
  const options = whole ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits };
  return value.toLocaleString("en", options).replaceAll(",", "\u202f");
}

/** "1 route", "2 routes". */
export const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

/** A text of at most so many characters, none of them cut in two. */
export function clipped(text, most) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

/** Round numbers that divide [low, high] into at most `parts` parts. */
export function ticks(low, high, parts) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / parts));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => span / k <= parts);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
    found.push(i * step || 0); // never -0
  }
  return found;
}
