/** The problem being edited. It always holds every value; switches say which of them count, so that turning
 * one off and on again loses nothing. Models are never changed in place: each function returns a new one.
 *
 * A location has an `id` for life, a `name`, a place (`x`, `y`, or longitude and latitude on the `globe`),
 * a `window` [opening, closing or null], and its `row` in the matrices; a customer also has an `amount`
 * (handed over if `pickup`, else received; then it may have `received` something, too), a `service` time,
 * `more` windows beside the first, and what the service declares beyond that (WISHES of fleet.js). `vehicles`,
 * `objective` and `costs` are those of fleet.js. With `roads`, the service measures these, not straight lines.
 */

import { beyond, fleetFrom, fleetTo, isGiven, plainType, usual, WISHES } from "./fleet.js";
import { alongGlobe } from "./globe.js";
import { daily } from "./units.js";

const ROAD_SPEED = 13.9; // metres per second, 50 km/h
const WORKDAY = [28_800, 57_600]; // seconds: from 8 to 16 o'clock, where a day is made up
const ANY_DAY = "any"; // the day of problems whose times are those of no particular one
let lastId = 0;

export const newId = () => ++lastId;

const NO_WISHES = { more: [], ...usual(WISHES) };

/** A model from elsewhere, with all that models have now: what is added to it gets ids that it does not have. */
export function adopted(model) {
  const whole = { ...fleetFrom({}, [], newId), roads: false, ...model };
  whole.customers = model.customers.map((customer) => ({ ...NO_WISHES, ...customer }));
  whole.vehicles = whole.vehicles.map((type) => ({ ...plainType(type.id, type.name), ...type }));
  lastId = Math.max(lastId, ...[...whole.depots, ...whole.customers, ...whole.vehicles].map(({ id }) => id));
  return whole;
}

/** A name without the characters that cannot be seen or written. */
// eslint-disable-next-line no-control-regex
export const legible = (name) => name.replace(/[\u0000-\u001f\u007f]/g, "");

// -- to and from the service's document (docs/formats.md)

export function fromDocument(document) {
  const places = [...document.depots, ...document.customers];
  const location = (place, row) => ({
    id: ++lastId,
    row,
    name: place.name,
    x: place.lon ?? place.x ?? null,
    y: place.lat ?? place.y ?? null,
    window: place.window ?? place.windows?.[0] ?? null,
  });
  const depots = document.depots.map(location);
  return {
    ...fleetFrom(document, depots, newId),
    name: document.name ?? "problem",
    capacity: document.capacity ?? null,
    fleet: document.fleet ?? null,
    limit: document.distance_limit ?? null,
    limitCountsService: document.limit_counts_service ?? false,
    rounding: document.rounding ?? "exact",
    globe: places.some((place) => place.lon !== undefined),
    distances: document.distances ?? null,
    durations: document.durations ?? null,
    speed: document.speed ?? null,
    day: document.day ?? null,
    roads: false,
    depots,
    customers: document.customers.map((customer, i) => ({
      ...location(customer, document.depots.length + i),
      amount: (customer.pickup || customer.delivery) ?? 0,
      pickup: Boolean(customer.pickup),
      received: (customer.pickup && customer.delivery) || 0, // beside what is handed over
      service: customer.service ?? 0,
      more: customer.windows?.slice(1) ?? [],
      ...Object.fromEntries(WISHES.map(({ key, usual }) => [key, customer[key] ?? usual])),
    })),
    open: document.open ?? false,
    backhaul: document.backhaul ?? "none",
    limited: (document.distance_limit ?? null) !== null,
    windows: places.some((place) => place.window || place.windows),
    several: document.depots.length > 1,
  };
}

export function toDocument(model) {
  const place = ({ name, x, y, ...hours }) => ({
    name,
    ...(x === null && y === null ? {} : model.globe ? { lon: x, lat: y } : { x, y }),
    ...spans(windowsOf(model, hours)),
  });
  const depots = depotsOf(model).map(place);
  if (model.windows) depots[0].window ??= [0, null]; // one window is what makes it a problem with windows
  return {
    name: model.name,
    ...(model.capacity === null && model.vehicles.length ? {} : { capacity: model.capacity }),
    ...fleetTo(model, depotsOf(model), (matrix) => part(model, matrix)),
    ...(model.fleet === null ? {} : { fleet: model.fleet }),
    open: model.open,
    backhaul: model.backhaul,
    ...(model.limited ? { distance_limit: model.limit, limit_counts_service: model.limitCountsService } : {}),
    ...(model.distances ? {} : { rounding: model.rounding }),
    depots,
    customers: model.customers.map((customer) => ({
      ...place(customer),
      [isPickup(model, customer) ? "pickup" : "delivery"]: customer.amount,
      ...(isPickup(model, customer) && customer.received ? { delivery: customer.received } : {}),
      service: customer.service,
      ...Object.fromEntries(WISHES.filter((a) => isGiven(a, customer[a.key])).map(({ key }) => [key, customer[key]])),
    })),
    ...(model.distances ? { distances: part(model, model.distances) } : {}),
    ...(model.durations ? { durations: part(model, model.durations) } : {}),
    ...(model.speed === null ? {} : { speed: model.speed }),
    ...(model.day ? { day: model.day } : {}),
  };
}

/** Windows as the document has them. */
export const spans = (windows) =>
  windows.length > 1 ? { windows } : windows.length ? { window: windows[0] } : {};

const part = (model, matrix) => {
  const rows = locations(model).map((location) => location.row);
  return rows.map((from) => rows.map((to) => matrix[from][to]));
};

// -- what counts

export const depotsOf = (model) => (model.several ? model.depots : model.depots.slice(0, 1));
export const locations = (model) => [...depotsOf(model), ...model.customers];
export const isPickup = (model, customer) => model.backhaul !== "none" && customer.pickup;

/** When a location is open: none where that is always. */
export const windowsOf = (model, { window, more }) =>
  model.windows ? [window, ...(more ?? [])].filter(Boolean) : [];

/** Whether places are given by a matrix, so that none can be added or moved. */
export const fixed = (model) =>
  [model, ...model.vehicles].some(({ distances, durations }) => distances || durations);

export function variantName(model) {
  const backhaul = { none: "", "linehauls-first": "B", mixed: "MB" }[model.backhaul];
  const limited = model.limited || model.vehicles.some((type) => type.distance_limit !== null);
  const letters = backhaul + (limited ? "L" : "") + (model.windows ? "TW" : "");
  const core = openAll(model) ? `OVRP${letters}` : letters ? `VRP${letters}` : "CVRP";
  return [(model.several ? "MD" : "") + core, ...beyond(model)].join(" + ");
}

/** Whether no route comes back, whichever vehicle it is for. */
const openAll = ({ open, vehicles }) =>
  vehicles.length ? vehicles.every((type) => type.open ?? (open && type.end === null)) : open;

/** Where a fault of the service belongs: {list, index, field} in the table, {field} in the form, or null. */
export function placeOf({ path = "" }) {
  const entry = path.match(/^(depots|customers|vehicles)\[(\d+)\](?:\.(\w+))?/);
  if (entry) return { list: entry[1], index: Number(entry[2]), field: entry[3] ?? "name" };
  return /^\w+$/.test(path) ? { field: path } : null;
}

// -- changes

/** One value of one location. */
export function set(model, id, values) {
  const update = (location) => (location.id === id ? { ...location, ...values } : location);
  return { ...model, depots: model.depots.map(update), customers: model.customers.map(update) };
}

export function remove(model, id) {
  const others = (location) => location.id !== id;
  const depots = model.depots.filter(others);
  if (!depots.length) return model;
  return {
    ...model,
    depots,
    customers: model.customers.filter(others),
    several: model.several && depots.length > 1,
  };
}

export function addCustomer(model, x, y) {
  const count = model.customers.length;
  const random = generator(count + 1);
  const customer = {
    id: ++lastId,
    name: freeName(model, count + 1, ""),
    x,
    y,
    amount: Math.min(1 + Math.floor(9 * random()), model.capacity || 1),
    pickup: random() < BACKHAUL_SHARE,
    service: model.windows ? (model.customers[0]?.service ?? 0) : 0,
    window: null,
    received: 0,
    ...NO_WISHES,
  };
  if (model.windows) customer.window = timed(model, customer, random);
  return { ...model, customers: [...model.customers, customer] };
}

/** Another depot, which means that there are several. */
export function addDepot(model, x, y) {
  const depot = {
    id: ++lastId,
    name: freeName(model, model.depots.length + 1, "depot "),
    x,
    y,
    window: model.depots[0].window,
  };
  return { ...model, depots: [...model.depots, depot], several: true };
}

function freeName(model, number, prefix) {
  const taken = new Set([...model.depots, ...model.customers].map((location) => location.name));
  while (taken.has(`${prefix}${number}`)) number++;
  return `${prefix}${number}`;
}

// -- switches, with values where there are none yet

const BACKHAUL_SHARE = 0.2;

/** The model with a switch turned. What is made up fits depot 1 alone, which any setting of the others keeps. */
export function turn(model, key, value) {
  const turned = { ...model, [key]: value };
  if (key === "backhaul" && value !== "none" && !model.customers.some((customer) => customer.pickup)) {
    const every = Math.min(5, model.customers.length);
    turned.customers = model.customers.map((c, i) => ({ ...c, pickup: i % every === every - 1 }));
  }
  if (key === "roads" && value) turned.day ??= ANY_DAY; // a routing server counts in seconds
  if (key === "limited" && value && model.limit === null) turned.limit = nice(2.5 * reach(model));
  if (key === "windows" && value && !model.customers.some((customer) => customer.window)) {
    return withWindows(turned);
  }
  if (key === "several" && value && model.depots.length === 1) return withDepots(turned);
  return turned;
}

/** On the globe, a problem without a speed gets one, so that its windows are times of a day, not metres. */
function withWindows(model) {
  if (model.globe && !fixed(model) && model.speed === null) {
    Object.assign(model, { speed: ROAD_SPEED, day: ANY_DAY });
  }
  const [from, to] = daily(model) ? WORKDAY : [0, 0];
  const day = [from, Math.max(to, from + dayLength(model))];
  model.depots = model.depots.map((depot) => ({ ...depot, window: depot.window ?? day }));
  const service = model.customers.some((customer) => customer.service)
    ? null
    : rounded(model, 0.1 * reach(model, time), Math.ceil);
  model.customers = model.customers.map((customer, i) => {
    const served = { ...customer, service: service ?? customer.service };
    return { ...served, window: timed(model, served, generator(i + 1)) };
  });
  return model;
}

/** A window that a vehicle from depot 1 can meet and be home in time. */
function timed(model, customer, random) {
  const [from, to] = model.depots[0].window ?? [0, null];
  const day = (to ?? from + dayLength(model)) - from;
  const travel = time(model, model.depots[0], customer);
  const latest = from + day - travel - customer.service;
  const middle = from + travel + random() * (latest - from - travel);
  const half = day * (0.06 + 0.1 * random());
  return [
    Math.max(from, rounded(model, middle - half)),
    Math.min(rounded(model, middle + half), rounded(model, latest, Math.floor)),
  ];
}

/** Two more depots, each where the others are farthest. */
function withDepots(model) {
  for (let i = 0; i < 2; i++) {
    const gap = (place) => Math.min(...model.depots.map((depot) => length(model, depot, place)));
    const far = model.customers.reduce((best, c) => (gap(c) > gap(best) ? c : best), model.customers[0]);
    const { x, y } = far ?? { x: 20 + 60 * i, y: 20 };
    const [first] = model.depots;
    const digits = model.globe ? 1e4 : 1 / step(reach(model));
    const inwards = (a, b) => Math.round((0.75 * a + 0.25 * b) * digits) / digits;
    model = addDepot(model, inwards(x, first.x), inwards(y, first.y));
  }
  return model;
}

// -- measures for made-up values

/** From a to b or back, whichever is longer, with room for rounding. */
export function length(model, a, b) {
  if (model.distances) return longer(model.distances, a, b);
  const straight = model.globe ? alongGlobe(a, b) : Math.hypot(a.x - b.x, a.y - b.y);
  return model.rounding === "exact" ? straight : Math.ceil(straight) + 1;
}

function time(model, a, b) {
  return model.durations ? longer(model.durations, a, b) : length(model, a, b) / (model.speed || 1);
}

const longer = (matrix, a, b) => Math.max(matrix[a.row][b.row], matrix[b.row][a.row]);

/** How far the farthest customer is from depot 1, in length or time. */
function reach(model, measure = length) {
  return Math.max(0, ...model.customers.map((c) => measure(model, model.depots[0], c))) || 50;
}

const dayLength = (model) => nice(5.5 * reach(model, time));

/** The power of ten in which values of that size are made up. */
const step = (size) => 10 ** Math.floor(Math.log10(size / 30));

/** A made-up time; of the day, in steps of five minutes. */
function rounded(model, value, how = Math.round) {
  const unit = daily(model) ? 300 : step(reach(model, time));
  return clean(how(value / unit) * unit);
}

const clean = (value) => Number(value.toPrecision(12));

/** Rounded up to two digits. */
function nice(value) {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return clean(Math.ceil(value / unit) * unit);
}

/** Random numbers in [0, 1), the same for the same seed (mulberry32). */
function generator(seed) {
  let a = Math.imul(seed, 0x9e3779b9);
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// -- new problems

export function blank() {
  return fromDocument({
    name: "sketch",
    capacity: 40,
    depots: [{ name: "depot", x: 50, y: 50 }],
    customers: [],
  });
}

/** The same in longitude and latitude, about Zurich. */
export function blankMap() {
  return fromDocument({
    name: "map",
    capacity: 40,
    depots: [{ name: "depot", lon: 8.54, lat: 47.37 }],
    customers: [],
  });
}

/** `count` customers on a plane of 150 by 100, half of them in towns. */
export function scattered(count, seed) {
  const random = generator(seed + 1);
  const within = (value, most) => clean(Math.min(most, Math.max(0, Math.round(value * 10) / 10)));
  const towns = Array.from({ length: 6 }, () => [15 + 120 * random(), 15 + 70 * random()]);
  const customers = Array.from({ length: count }, (_, i) => {
    const [tx, ty] = towns[i % towns.length];
    const [angle, radius] = [2 * Math.PI * random(), 14 * Math.sqrt(random()) * random()];
    const inTown = random() < 0.5;
    return {
      name: String(i + 1),
      x: within(inTown ? tx + radius * Math.cos(angle) : 150 * random(), 150),
      y: within(inTown ? ty + radius * Math.sin(angle) : 100 * random(), 100),
      delivery: 1 + Math.floor(9 * random()),
    };
  });
  const capacity = count <= 20 ? 30 : 30 + Math.floor(count / 5);
  return fromDocument({
    name: `random ${count}`,
    capacity,
    depots: [{ name: "depot", x: 75, y: 50 }],
    customers,
  });
}
