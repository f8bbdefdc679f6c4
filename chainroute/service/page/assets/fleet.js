/** Vehicle types and costs: to and from the service's document, and what they mean for a route.
 *
 * A type has the attributes that the service declares (attributes.js) by their names in documents, null where
 * it is as the problem says, an `id` for life, and depots by their ids.
 */

import { BEYOND, CUSTOMER, VEHICLE } from "./attributes.js";

export const COSTS = VEHICLE.filter(({ unit }) => unit.startsWith("money")).map(({ key }) => key);
/** What most customers lack: attributes beyond the 48 variants, but for windows, which are edited as such. */
export const WISHES = CUSTOMER.filter(({ kind, beyond }) => beyond && kind !== "windows");
const [BEGINS_ANYWHERE] = VEHICLE.filter(({ beyond }) => beyond === "free start");

/** Whether a value is other than the usual one. */
export const isGiven = ({ usual }, value) => JSON.stringify(value ?? usual) !== JSON.stringify(usual);

/** The usual values of attributes. */
export const usual = (attributes) => Object.fromEntries(attributes.map((a) => [a.key, a.usual]));

/** A type with nothing of its own. */
export const plainType = (id, name) => ({ ...usual(VEHICLE), id, name });

/** What lies in a document beyond the 48 variants; depots are those of the model. */
export function fleetFrom(document, depots, newId) {
  const ids = new Map(depots.map(({ id, name }) => [name, id]));
  const read = ({ kind, usual }, value) => {
    if (kind === "depot") return ids.get(value) ?? null;
    return kind === "depots" ? (value ?? []).map((name) => ids.get(name)) : (value ?? usual);
  };
  const vehicles = (document.vehicles ?? []).map((given, i) => {
    const own = Object.fromEntries(VEHICLE.map((a) => [a.key, read(a, given[a.key])]));
    return { ...own, id: newId(), name: given.name ?? `type ${i + 1}` };
  });
  const costs = Object.fromEntries(COSTS.map((key) => [key, document[key] ?? null]));
  const objective = document.objective ?? (costs.cost_per_distance === null ? "distance" : "money");
  return { vehicles, objective, costs };
}

/** The fields of the document for these; `part` gives the rows of a matrix that count. */
export function fleetTo(model, depots, part) {
  const names = new Map(depots.map(({ id, name }) => [id, name]));
  const write = ({ kind }, value) => {
    if (kind === "depot") return names.get(value) ?? null;
    if (kind === "depots") return value.map((id) => names.get(id)).filter(Boolean);
    return kind === "matrix" ? part(value) : value;
  };
  const vehicles = model.vehicles.map((type) => {
    const own = VEHICLE.map((a) => [a.key, isGiven(a, type[a.key]) ? write(a, type[a.key]) : null]);
    const open = type.open ?? (model.open && type.end !== null ? false : null); // an end is not open
    return given({ ...Object.fromEntries(own), open });
  });
  return {
    ...(vehicles.length ? { vehicles } : {}),
    ...(model.objective === "distance" ? {} : { objective: model.objective }),
    ...(model.objective === "time" ? {} : given(model.costs)),
  };
}

const given = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

// -- what counts

const typeOf = (model, route) => model.vehicles.find(({ id }) => id === route.vehicle);
export const capacityOf = (model, route) => typeOf(model, route)?.capacity ?? model.capacity;
export const limitOf = (model, route) =>
  typeOf(model, route)?.distance_limit ?? (model.limited ? model.limit : null);

/** Whether a route begins at its first customer, not at a depot. */
export const startsAnywhere = (model, route) => isGiven(BEGINS_ANYWHERE, typeOf(model, route)?.[BEGINS_ANYWHERE.key]);

/** What a route's vehicle is called, where there are types. */
export const vehicleName = (model, route) => typeOf(model, route)?.name ?? "";

/** Whether any customer has an attribute. */
const wished = (model, a) => model.customers.some((customer) => isGiven(a, customer[a.key]));

/** Whether the cost of a plan is its length. */
export function costsLength(model) {
  const priced = (fields) => COSTS.some((key) => fields[key] !== null);
  const paid = WISHES.some((a) => a.unit === "money" && wished(model, a));
  return model.objective === "distance" && !priced(model.costs) && !model.vehicles.some(priced) && !paid;
}

/** What lies beyond the 48 variants, in the service's words and order. */
export function beyond(model) {
  const some = (has) => model.vehicles.some(has);
  const every = model.vehicles.length ? model.vehicles : [{}];
  const rates = every.map((type) => COSTS.map((key) => type[key] ?? rate(model, key)).join());
  const least = rates.every((all) => all === "0,0,1");
  const tied = model.several && some(({ depot }) => depot !== null);
  const derived = {
    "mixed fleet": model.vehicles.length > 1 || tied,
    "several windows": model.windows && model.customers.some(({ more }) => more.length),
    "both at once":
      model.backhaul === "linehauls-first" && model.customers.some(({ pickup, received }) => pickup && received),
    "least time": least,
    money: !least && rates.some((all) => all !== "0,1,0"),
  };
  const declared = (word) =>
    VEHICLE.some((a) => a.beyond === word && some((type) => isGiven(a, type[a.key]))) ||
    WISHES.some((a) => a.beyond === word && wished(model, a));
  return BEYOND.filter((word) => derived[word] ?? declared(word));
}

function rate(model, key) {
  if (model.objective === "time") return key === "cost_per_time" ? 1 : 0;
  return model.costs[key] ?? (key === "cost_per_distance" && model.objective === "distance" ? 1 : 0);
}
