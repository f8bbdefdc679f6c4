/** The table of vehicle types: a row for each; what is empty is as the form says. */

import { $, h } from "./dom.js";
import { plainType } from "./fleet.js";
import { depotsOf, newId } from "./problem.js";
import { edit, running, state, subscribe } from "./state.js";
import { entered, listed, written } from "./table.js";
import { clock, daily } from "./units.js";
import "./tabs.js"; // which shows and hides the table before it is drawn

const root = $("#vehicles");
const FIRST = ["van", "truck", "bike"]; // names of types that are added
const [HOME, ANYWHERE] = ["where it started", "anywhere"]; // where routes end
let drawn = {}; // what the table was drawn for

const put = (id, values) =>
  edit({
    ...state.model,
    vehicles: state.model.vehicles.map((type) => (type.id === id ? { ...type, ...values } : type)),
  });

/** A column edits one field of a type: how it is read, and put back. */
function columns(model) {
  const plain = (title, key, usual = "") => ({
    title,
    field: key,
    usual,
    get: (type) => type[key],
    put: (value) => ({ [key]: value }),
  });
  const bound = (title, at) => ({
    title,
    field: "shift",
    clock: daily(model),
    get: (type) => type.shift?.[at],
    put: (value, type) => {
      const shift = [type.shift?.[0] ?? null, type.shift?.[1] ?? null].with(at, value);
      return { shift: shift[0] === null && shift[1] === null ? null : [shift[0] ?? 0, shift[1]] };
    },
  });
  const { costs } = model;
  return [
    { ...plain("Name", "name"), text: true },
    plain("Number", "count", model.fleet ?? "any"),
    ...(depotsOf(model).length > 1 ? [{ title: "Depot", field: "depot", choice: true, none: "each" }] : []),
    { title: "Starts", field: "open_start", begin: true },
    { title: "Ends", field: "end", choice: true, none: model.open ? ANYWHERE : HOME, open: true },
    plain("Capacity", "capacity", model.capacity ?? ""),
    plain("Fixed cost", "fixed_cost", costs.fixed_cost ?? 0),
    plain("Per distance", "cost_per_distance", costs.cost_per_distance ?? Number(model.objective === "distance")),
    plain("Per time", "cost_per_time", costs.cost_per_time ?? Number(model.objective === "time")),
    bound("Shift from", 0),
    bound("Shift to", 1),
    plain("Longest time", "max_duration", "any"),
    plain("Distance limit", "distance_limit", model.limited ? (model.limit ?? "") : "any"),
    plain("Speed", "speed", model.speed ?? ""),
    {
      ...plain("Skills", "skills"),
      text: true,
      get: (type) => type.skills.join(", "),
      put: (value) => ({ skills: listed(value) }),
    },
    { ...plain("Trips", "max_trips"), put: (value) => ({ max_trips: value ?? 1 }) },
  ];
}

function draw() {
  const { model } = state;
  drawn = { model, locked: running() };
  const focused = document.activeElement?.dataset.cell;
  root.replaceChildren(
    h(
      "div",
      { class: "row bar" },
      h("button", { type: "button", disabled: running(), onclick: add }, "Add vehicle type"),
      h(
        "span",
        { class: "hint" },
        model.vehicles.length
          ? "What is empty is as the form says."
          : "All vehicles are alike, as the form says. Add types where they differ.",
      ),
    ),
    ...(model.vehicles.length ? [table(model)] : []),
  );
  if (focused) $(`[data-cell="${CSS.escape(focused)}"]`, root)?.focus();
  markFaults();
}

function table(model) {
  const titles = columns(model).map(({ title }) => h("th", { scope: "col" }, title));
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, titles, h("td"))),
      h("tbody", {}, model.vehicles.map((type, i) => line(model, type, `vehicles[${i}]`))),
    ),
  );
}

function line(model, type, where) {
  const cells = columns(model).map((column) => {
    const names = { "aria-label": `${column.title} of ${type.name}`, "data-cell": `${type.id} ${column.title}` };
    const attributes = { ...names, disabled: running() };
    const make = column.begin ? begin : column.choice ? choice : value;
    const field = make(column, type, attributes);
    const wide = column.begin || column.choice || column.field === "skills" ? "wide" : null;
    return h("td", { "data-where": `${where}.${column.field}`, class: wide }, field);
  });
  const remove = () => {
    edit({ ...state.model, vehicles: state.model.vehicles.filter(({ id }) => id !== type.id) });
  };
  const label = `Delete ${type.name}`;
  const attributes = { type: "button", class: "quiet", "aria-label": label, disabled: running(), onclick: remove };
  return h("tr", {}, ...cells, h("td", {}, h("button", attributes, "✕")));
}

/** The type as the last change left it, which may be later than the row was drawn. */
const latest = ({ id }) => state.model.vehicles.find((type) => type.id === id);

function value(column, type, attributes) {
  const shown = (found) => (column.clock && found != null ? clock(state.model, found) : (found ?? ""));
  const input = h("input", {
    ...attributes,
    type: column.text || column.clock ? "text" : "number",
    maxlength: column.text ? state.limits.max_name : null,
    placeholder: (column.usual ?? "") === "" ? null : String(column.usual),
    step: "any",
    size: 1,
    onchange: () => {
      const found = entered(column, input);
      if (Number.isNaN(found)) markFaults();
      else put(type.id, column.put(found, latest(type)));
    },
  });
  input.value = shown(column.get(type));
  return input;
}

/** At a depot, or at the first customer. */
function begin(_, type, attributes) {
  const option = (value, name) => h("option", { value, selected: Boolean(value) === Boolean(type.open_start) }, name);
  const take = ({ target }) => put(type.id, { open_start: target.value === "open" });
  return h("select", { ...attributes, onchange: take }, option("", "at its depot"), option("open", "at its first stop"));
}

/** One of the depots; where a route ends, also the other of home and anywhere than the form says. */
function choice({ field, none, open }, type, attributes) {
  const own = open && type.open !== null && type.open !== state.model.open;
  const now = type[field] === null && own ? "own" : String(type[field] ?? "");
  const option = (value, name) => h("option", { value, selected: value === now }, name);
  const take = ({ target }) => {
    const id = /^\d+$/.test(target.value) ? Number(target.value) : null;
    put(type.id, { [field]: id, ...(open ? { open: target.value === "own" ? !state.model.open : null } : {}) });
  };
  return h(
    "select",
    { ...attributes, onchange: take },
    option("", none),
    ...(open ? [option("own", state.model.open ? HOME : ANYWHERE)] : []),
    ...depotsOf(state.model).map(({ id, name }) => option(String(id), name)),
  );
}

function add() {
  const { model } = state;
  const taken = new Set(model.vehicles.map(({ name }) => name));
  const names = [...FIRST, ...model.vehicles.map((_, i) => `type ${i + 1}`), `type ${taken.size + 1}`];
  const type = plainType(newId(), names.find((name) => !taken.has(name)));
  edit({ ...model, vehicles: [...model.vehicles, type] });
}

function markFaults() {
  written(root, "vehicles");
}

subscribe((keys) => {
  if (!state.model || root.hidden) return;
  if (drawn.model !== state.model || drawn.locked !== running() || keys.has("limits")) draw();
  else if (keys.has("faults") || keys.has("tab")) markFaults();
});
