/** The table of vehicle types: a row for each; what is empty is as the form says. */

import { $, h } from "./dom.js";
import { VEHICLE } from "./attributes.js";
import { plainType } from "./fleet.js";
import { depotsOf, newId } from "./problem.js";
import { edit, running, state, subscribe } from "./state.js";
import { declared, entered, written } from "./table.js";
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

/** The columns of a declared attribute: how its value is read from a type, and put back. */
function columnsOf(model, a) {
  const { key, kind, titles, usual } = a;
  const plain = {
    title: titles[0],
    field: key,
    usual: shared(model)[key] ?? a.hint,
    get: (type) => type[key],
    put: (value) => ({ [key]: value ?? usual }),
  };
  const bound = (at) => ({
    title: titles[at],
    field: key,
    clock: daily(model),
    get: (type) => type[key]?.[at],
    put: (value, type) => {
      const ends = [type[key]?.[0] ?? null, type[key]?.[1] ?? null].with(at, value);
      return { [key]: ends[0] === null && ends[1] === null ? null : [ends[0] ?? 0, ends[1]] };
    },
  });
  const depots = depotsOf(model).length;
  if (key === "depot") return depots > 1 ? [{ ...plain, choice: true, none: "each" }] : [];
  if (kind === "depot") return [{ ...plain, choice: true, none: model.open ? ANYWHERE : HOME, open: true }];
  if (kind === "yes or no") return [{ ...plain, flag: true, negated: a.negated }];
  if (kind === "window") return [bound(0), bound(1)];
  if (kind === "texts") return [declared(a)];
  return [kind === "text" ? { ...plain, text: true } : plain];
}

/** What counts where a type has no value of its own. */
const shared = (model) => ({
  count: model.fleet ?? "any",
  capacity: model.capacity ?? "",
  fixed_cost: model.costs.fixed_cost ?? 0,
  cost_per_distance: model.costs.cost_per_distance ?? Number(model.objective === "distance"),
  cost_per_time: model.costs.cost_per_time ?? Number(model.objective === "time"),
  distance_limit: model.limited ? (model.limit ?? "") : "any",
  speed: model.speed ?? "",
});

/** Matrices and lists of depots come from files; that routes stay open is said where they end. */
const EDITED = VEHICLE.filter(({ key, kind }) => key !== "open" && !["matrix", "depots"].includes(kind));
const columns = (model) => EDITED.flatMap((a) => columnsOf(model, a));

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
    const make = column.flag ? flag : column.choice ? choice : value;
    const field = make(column, type, attributes);
    const wide = column.wide || column.choice || column.flag ? "wide" : null;
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

/** Yes or no, the usual answer first. */
function flag({ get, put: given, negated }, type, attributes) {
  const now = Boolean(get(type)) === negated ? "no" : "yes";
  const option = (answer) => h("option", { value: answer, selected: answer === now }, answer);
  const take = ({ target }) => put(type.id, given((target.value === "yes") !== negated));
  return h("select", { ...attributes, onchange: take }, ...(negated ? ["yes", "no"] : ["no", "yes"]).map(option));
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
