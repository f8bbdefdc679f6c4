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

/** What `clock` writes, or a plain number, read back; null for nothing, NaN for nonsense. */
export function moment(model, text) {
  const parts = text.trim().match(/^(\d+):(\d\d)(?::(\d\d))?$/);
  if (!parts || !daily(model)) return text.trim() === "" ? null : Number(text);
  const [hours, minutes, seconds] = parts.slice(1).map((part) => Number(part ?? 0));
  return hours * 3600 + minutes * 60 + seconds;
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
