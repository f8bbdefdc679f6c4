/** Lengths and times for people: kilometres and times of the day where the problem has them, plain numbers
 * elsewhere. */

import { show } from "./dom.js";
import { costsLength } from "./fleet.js";
import { alongGlobe } from "./globe.js";

const WINDING = [0.99, 4]; // times the way along the globe that roads are long, if their unit is the metre
const known = new WeakMap(); // whether lengths are metres, by model: matrices are large

/** Whether lengths are metres: along the globe they are, and in matrices whose roads are that long. */
export function metric(model) {
  if (!known.has(model)) known.set(model, model.globe && (!model.distances || windsAsRoads(model)));
  return known.get(model);
}

function windsAsRoads({ depots: [depot], customers, distances }) {
  const reached = customers.filter(({ row }) => distances[depot.row][row] > 0);
  const sum = (measure) => reached.reduce((total, customer) => total + measure(customer), 0);
  const winding = sum(({ row }) => distances[depot.row][row]) / sum((place) => alongGlobe(depot, place));
  return winding >= WINDING[0] && winding <= WINDING[1];
}

/** Whether times are seconds of a day. */
export const daily = (model) => Boolean(model.day);

export const length = (model, value, digits = 4) =>
  metric(model) && Number.isFinite(value) ? `${show(value / 1000, digits)} km` : show(value, digits + 1);

/** A time whose unit is unknown; where it is the way itself, for want of a speed, that is a length. */
const plain = (model, value) =>
  model.durations || model.speed !== null ? show(value) : length(model, value);

/** What a plan costs: a length, unless other things have a price. */
export const cost = (model, value, digits = 4) =>
  costsLength(model) ? length(model, value, digits) : show(value, digits + 1);

const two = (value) => String(value).padStart(2, "0");

/** A moment: 8:05, or 8:05:30; a plain number where the unit is unknown. */
export function clock(model, value) {
  if (!daily(model) || !Number.isFinite(value)) return plain(model, value);
  const seconds = Math.round(value);
  const rest = seconds % 60 ? `:${two(seconds % 60)}` : "";
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}${rest}`;
}

/** A moment to the minute, for axes and lists. */
export const minute = (model, value) => clock(model, daily(model) ? Math.round(value / 60) * 60 : value);

/** A number; null for nothing, NaN for nonsense. */
export const numeral = (text) => (text.trim() === "" ? null : Number(text));

const SECONDS = [
  [/^s(ecs?|econds?)?$/i, 1],
  [/^min(s|utes?)?$/i, 60],
  [/^(h|hrs?|hours?)$/i, 3600],
];
const CLOCK = /^(\d+)(?:[:h](\d\d)(?::(\d\d(?:\.\d+)?))?)?\s*(?:([ap])\.?m\.?)?$/i;
const SPAN = /(\d+(?:[.,]\d+)?)\s*([a-z]+)/gi;

/** What `clock` writes and spreadsheets may hold, dates aside, read back (chainroute/formats/tables/cells.py): 8:30,
 * 8:30 pm, 8h30, 90 min. Null for nothing, NaN for nonsense, which on a day is also a number without a unit. */
export function moment(model, text) {
  const found = numeral(text);
  if (!daily(model) || found === null || found === 0) return found;
  return Number.isNaN(found) ? ofDay(text.trim()) : NaN;
}

function ofDay(text) {
  const [, hours, minutes, seconds = 0, half] = text.match(CLOCK) ?? [];
  if (hours === undefined) return lasting(text);
  if ((half && hours > 12) || minutes > 59 || seconds >= 60) return NaN;
  const hour = half ? (hours % 12) + 12 * /p/i.test(half) : Number(hours);
  return hour * 3600 + Number(minutes ?? 0) * 60 + Number(seconds);
}

/** Seconds in "1 h 30 min". */
function lasting(text) {
  if (text.replace(SPAN, "").trim()) return NaN;
  const parts = [...text.matchAll(SPAN)].map(([, number, unit]) => {
    const [, seconds] = SECONDS.find(([words]) => words.test(unit)) ?? [];
    return Number(number.replace(",", ".")) * seconds;
  });
  return parts.reduce((total, part) => total + part, 0);
}

/** A length of time. */
export function span(model, value) {
  if (!daily(model) || !Number.isFinite(value)) return plain(model, value);
  const minutes = Math.round(value / 60);
  if (minutes < 1) return `${Math.round(value)} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

const STEPS = [60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400]; // seconds

/** Round moments that divide a time of the day into at most `parts` parts; null where it is none. */
export function moments(model, low, high, parts) {
  if (!daily(model)) return null;
  const step = STEPS.find((seconds) => high - low <= parts * seconds) ?? STEPS.at(-1);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}
