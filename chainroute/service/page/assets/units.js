/** Lengths and times for people: kilometres and times of the day where the problem has them, plain numbers
 * elsewhere. */

import { show } from "./dom.js";
import { alongGlobe } from "./globe.js";

const FASTEST = 60; // metres per second that no vehicle on a road exceeds
const DAY = [28_800, 57_600]; // seconds: from 8 to 16 o'clock, where a day is made up

const WINDING = [0.99, 4]; // times the way along the globe that roads are long, if their unit is the metre

/** Whether lengths are metres: along the globe they are, and roads whose lengths are those of roads. */
function metric(model) {
  if (!model.globe || !model.distances) return model.globe;
  const winding = 1 / globePer(model, model.distances);
  return winding >= WINDING[0] && winding <= WINDING[1];
}

/** The seconds in the problem's unit of time, as far as the metres that it is enough for tell; or null. */
export function second(model) {
  if (!seconds.has(model)) seconds.set(model, unitOfTime(model));
  return seconds.get(model);
}
const seconds = new WeakMap(); // by model, since matrices are large

function unitOfTime(model) {
  if (!metric(model)) return null;
  const speed = model.durations ? globePer(model, model.durations) : model.speed;
  return speed > 0 ? ([1, 60, 3600].find((unit) => speed <= FASTEST * unit) ?? null) : null;
}

/** Metres along the globe for each unit of a matrix, from the first depot to all customers. */
function globePer(model, matrix) {
  const [depot] = model.depots;
  const reached = model.customers.filter(({ row }) => matrix[depot.row][row] > 0);
  const sum = (measure) => reached.reduce((total, customer) => total + measure(customer), 0);
  return sum((customer) => alongGlobe(depot, customer)) / sum(({ row }) => matrix[depot.row][row]);
}

/** The hours of a day, in the problem's unit, where that is known. */
export const workday = (model) => (second(model) ? DAY.map((value) => value / second(model)) : null);

export const length = (model, value, digits = 4) =>
  metric(model) && Number.isFinite(value) ? `${show(value / 1000, digits)} km` : show(value, digits + 1);

/** A time whose unit is unknown; where it is the way itself, for want of a speed, that is a length. */
const plain = (model, value) =>
  model.durations || model.speed !== null ? show(value) : length(model, value);

const two = (value) => String(value).padStart(2, "0");

/** A moment: 8:05, or 8:05:30; a plain number where the unit is unknown. */
export function clock(model, value) {
  const unit = second(model);
  if (!unit || !Number.isFinite(value)) return plain(model, value);
  const seconds = Math.round(value * unit);
  const rest = seconds % 60 ? `:${two(seconds % 60)}` : "";
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}${rest}`;
}

/** A moment to the minute, for axes and lists. */
export function minute(model, value) {
  const unit = second(model);
  return unit ? clock(model, (Math.round((value * unit) / 60) * 60) / unit) : plain(model, value);
}

/** What `clock` writes, or a plain number, read back; null for nothing, NaN for nonsense. */
export function moment(model, text) {
  const parts = text.trim().match(/^(\d+):(\d\d)(?::(\d\d))?$/);
  if (!parts || !second(model)) return text.trim() === "" ? null : Number(text);
  const [hours, minutes, seconds] = parts.slice(1).map((part) => Number(part ?? 0));
  return (hours * 3600 + minutes * 60 + seconds) / second(model);
}

/** A length of time. */
export function span(model, value) {
  const unit = second(model);
  if (!unit || !Number.isFinite(value)) return plain(model, value);
  const minutes = Math.round((value * unit) / 60);
  if (minutes < 1) return `${Math.round(value * unit)} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

const STEPS = [60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400]; // seconds

/** Round moments that divide a time of the day into at most `parts` parts; null where it is none. */
export function moments(model, low, high, parts) {
  const unit = second(model);
  if (!unit) return null;
  const step = (STEPS.find((seconds) => (high - low) * unit <= parts * seconds) ?? STEPS.at(-1)) / unit;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}
