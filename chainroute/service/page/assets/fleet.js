/** Vehicle types and costs: to and from the service's document, and what they mean for a route.
 *
 * A type has the fields of the document (docs/formats.md), null where it is as the problem says, an `id` for
 * life, and depots by id: `depot`, `end` and `reloads`.
 */

export const COSTS = ["fixed_cost", "cost_per_distance", "cost_per_time"];
const NUMBERS = ["count", "capacity", ...COSTS, "max_duration", "distance_limit", "speed"];

/** A type with nothing of its own. */
export const plainType = (id, name) => ({
  id,
  name,
  ...Object.fromEntries(NUMBERS.map((key) => [key, null])),
  depot: null,
  end: null,
  open: null,
  open_start: false,
  shift: null,
  skills: [],
  max_trips: 1,
  reloads: [],
  distances: null,
  durations: null,
});

/** What lies in a document beyond the 48 variants; depots are those of the model. */
export function fleetFrom(document, depots, newId) {
  const ids = new Map(depots.map(({ id, name }) => [name, id]));
  const vehicles = (document.vehicles ?? []).map((given, i) => {
    const type = plainType(newId(), given.name ?? `type ${i + 1}`);
    for (const key of Object.keys(type)) if (key !== "id") type[key] = given[key] ?? type[key];
    type.depot = ids.get(given.depot) ?? null;
    type.end = ids.get(given.end) ?? null;
    type.reloads = (given.reload_depots ?? []).map((name) => ids.get(name));
    return type;
  });
  const costs = Object.fromEntries(COSTS.map((key) => [key, document[key] ?? null]));
  const objective = document.objective ?? (costs.cost_per_distance === null ? "distance" : "money");
  return { vehicles, objective, costs };
}

/** The fields of the document for these; `part` gives the rows of a matrix that count. */
export function fleetTo(model, depots, part) {
  const names = new Map(depots.map(({ id, name }) => [id, name]));
  const named = (id) => (id === null ? null : (names.get(id) ?? null));
  const vehicles = model.vehicles.map((type) => {
    const { depot, end, reloads, max_trips, distances, durations } = type;
    const own = Object.fromEntries([...NUMBERS, "shift"].map((key) => [key, type[key]]));
    return given({
      name: type.name,
      ...own,
      open: type.open ?? (model.open && end !== null ? false : null), // who has an end is not open
      depot: named(depot),
      end: named(end),
      open_start: type.open_start || null,
      skills: type.skills.length ? type.skills : null,
      max_trips: max_trips === 1 ? null : max_trips,
      reload_depots: reloads.length ? reloads.map(named).filter(Boolean) : null,
      distances: distances && part(distances),
      durations: durations && part(durations),
    });
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
export const startsAnywhere = (model, route) => Boolean(typeOf(model, route)?.open_start);

/** What a route's vehicle is called, where there are types. */
export const vehicleName = (model, route) => typeOf(model, route)?.name ?? "";

/** Whether the cost of a plan is its length. */
export function costsLength(model) {
  const priced = (fields) => COSTS.some((key) => fields[key] !== null);
  const prizes = model.customers.some(({ prize }) => prize !== null);
  return model.objective === "distance" && !priced(model.costs) && !model.vehicles.some(priced) && !prizes;
}

/** What lies beyond the 48 variants, in the service's words and order. */
export function beyond(model) {
  const some = (has) => model.vehicles.some(has);
  const every = model.vehicles.length ? model.vehicles : [{}];
  const rates = every.map((type) => COSTS.map((key) => type[key] ?? rate(model, key)).join());
  const least = rates.every((all) => all === "0,0,1");
  const tied = model.several && some(({ depot }) => depot !== null);
  const found = {
    "mixed fleet": model.vehicles.length > 1 || tied,
    "other end": some(({ end }) => end !== null),
    "free start": some((type) => type.open_start),
    "own roads": some(({ speed, distances, durations }) => speed !== null || distances || durations),
    shifts: some(({ shift, max_duration }) => shift || max_duration !== null),
    "several trips": some(({ max_trips }) => max_trips > 1),
    optional: model.customers.some(({ prize }) => prize !== null),
    "several windows": model.windows && model.customers.some(({ more }) => more.length),
    skills: model.customers.some(({ skills }) => skills.length),
    "both at once":
      model.backhaul === "linehauls-first" && model.customers.some(({ pickup, received }) => pickup && received),
    "least time": least,
    money: !least && rates.some((all) => all !== "0,1,0"),
  };
  return Object.keys(found).filter((name) => found[name]);
}

function rate(model, key) {
  if (model.objective === "time") return key === "cost_per_time" ? 1 : 0;
  return model.costs[key] ?? (key === "cost_per_distance" && model.objective === "distance" ? 1 : 0);
}
