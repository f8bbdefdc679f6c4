/** The table of locations, a page at a time: every number can be edited, every row added or deleted. */

import { $, h } from "./dom.js";
import { isGiven, WISHES } from "./fleet.js";
import { addCustomer, addDepot, depotsOf, fixed, legible, locations, placeOf, remove, set } from "./problem.js";
import { change, edit, running, state, subscribe } from "./state.js";
import { clock, daily, moment, numeral } from "./units.js";
import "./tabs.js"; // which shows and hides the table before it is drawn

const PAGE = 50;
const root = $("#table");
let page = 0;
let every = false; // whether columns are shown that nothing stands in
let drawn = {}; // what the table was drawn for

/** Depots first, then customers, each with its place in the document. */
const rows = (model) => [
  ...depotsOf(model).map((location, i) => ({ location, where: `depots[${i}]`, depot: true })),
  ...model.customers.map((location, i) => ({ location, where: `customers[${i}]`, depot: false })),
];

function draw() {
  const { model } = state;
  const all = rows(model);
  page = Math.max(0, Math.min(page, Math.ceil(all.length / PAGE) - 1));
  drawn = { model, page, locked: running() };
  const focused = document.activeElement?.dataset.cell;
  const part = all.slice(page * PAGE, (page + 1) * PAGE);
  root.replaceChildren(
    h(
      "div",
      { class: "row bar" },
      h(
        "button",
        { type: "button", disabled: running() || fixed(model), onclick: () => add(addCustomer) },
        "Add customer",
      ),
      h(
        "button",
        { type: "button", disabled: running() || fixed(model), onclick: () => add(addDepot) },
        "Add depot",
      ),
      h("button", { type: "button", "aria-pressed": String(every), onclick: showEvery }, "All columns"),
      h("span", { class: "spring" }),
      ...(all.length > PAGE ? pager(all.length) : []),
    ),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            columns(model).map(({ title }) => h("th", { scope: "col" }, title)),
            h("td"),
          ),
        ),
        h(
          "tbody",
          {},
          part.map((row) => line(model, row)),
        ),
      ),
    ),
  );
  if (focused) $(`[data-cell="${CSS.escape(focused)}"]`, root)?.focus();
  markFaults();
}

function showEvery() {
  every = !every;
  draw();
  $("[aria-pressed]", root).focus();
}

function pager(count) {
  const turnTo = (to) => () => {
    page = to;
    draw();
  };
  const last = Math.ceil(count / PAGE) - 1;
  return [
    h(
      "button",
      { type: "button", disabled: page === 0, onclick: turnTo(page - 1), "aria-label": "Previous rows" },
      "‹",
    ),
    h("span", {}, `${page * PAGE + 1}–${Math.min(count, (page + 1) * PAGE)} of ${count}`),
    h(
      "button",
      { type: "button", disabled: page === last, onclick: turnTo(page + 1), "aria-label": "Next rows" },
      "›",
    ),
  ];
}

/** A column edits one `field` of the document: how its value is read from a location, and put back. */
function columns(model) {
  const plain = (key) => ({ get: (l) => l[key], put: (value) => ({ [key]: value }) });
  const [x, y] = model.globe ? ["lon", "lat"] : ["x", "y"];
  const used = (has) => every || model.customers.some(has);
  return [
    { title: "Name", field: "name", text: true, ...plain("name") },
    ...(model.customers[0]?.x === null
      ? []
      : [
          { title: x, field: x, ...plain("x"), frozen: fixed(model) },
          { title: y, field: y, ...plain("y"), frozen: fixed(model) },
        ]),
    ...(model.backhaul === "none" ? [] : [{ title: "Kind", field: "kind", customer: true }]),
    { title: "Demand", field: "delivery", customer: true, ...plain("amount") },
    ...(model.backhaul !== "none" && used(({ pickup, received }) => pickup && received)
      ? [{ title: "Receives too", field: "received", customer: true, only: "pickup", ...plain("received") }]
      : []),
    ...(model.windows || model.customers.some((c) => c.service)
      ? [{ title: "Service", field: "service", customer: true, ...plain("service") }]
      : []),
    ...(model.windows
      ? [
          {
            title: "Opens",
            field: "window",
            clock: daily(model),
            get: (l) => l.window?.[0],
            put: (value, l) => ({ window: between(value, l.window?.[1]) }),
          },
          {
            title: "Closes",
            field: "window",
            clock: daily(model),
            get: (l) => l.window?.[1],
            put: (value, l) => ({ window: between(l.window?.[0], value) }),
          },
        ]
      : []),
    ...(model.windows && used(({ more }) => more.length)
      ? [
          {
            title: "More windows",
            field: "windows",
            customer: true,
            text: true,
            wide: true,
            get: (l) => l.more.map(spelled).join(", "),
            read: spans,
            such: `are no windows, such as ${spelled([28_800, 36_000])}, ${spelled([50_400, 57_600])}`,
            put: (value) => ({ more: value }),
          },
        ]
      : []),
    ...WISHES.filter((a) => used((customer) => isGiven(a, customer[a.key]))).map(declared),
  ];
}

/** The column of a declared attribute: a number, or a list of texts. */
export function declared({ key, kind, titles, hint }) {
  const column = { title: titles[0], field: key, customer: true, usual: hint };
  const [get, put] = [(holder) => holder[key], (value) => ({ [key]: value })];
  if (kind !== "texts") return { ...column, get, put };
  const texts = { get: (holder) => holder[key].join(", "), put: (value) => ({ [key]: listed(value) }) };
  return { ...column, text: true, wide: true, ...texts };
}

/** What a text lists: "lift, ice". */
export const listed = (text) =>
  text
    .split(/[,;]/)
    .map((word) => word.trim())
    .filter(Boolean);

const bound = (value) => (daily(state.model) ? clock(state.model, value) : String(value));
const spelled = ([opening, closing]) => `${bound(opening)}-${closing === null ? "" : bound(closing)}`;

/** Windows as `spelled`; NaN where they are none. */
function spans(text) {
  const found = listed(text).map((part) => part.split(/[-–—]|\bto\b|\buntil\b/).map((end) => moment(state.model, end)));
  return found.every((ends) => ends.length === 2 && ends[0] !== null && !ends.some(Number.isNaN)) ? found : NaN;
}

/** What was entered into a cell of a column; NaN where it cannot be read, which `written` tells for as long as
 * it stands there. */
export function entered(column, input) {
  const read = column.read ?? (column.text ? legible : column.clock ? (text) => moment(state.model, text) : numeral);
  const found = read(input.value);
  const such = column.such ?? "is no time, such as 8:30 or 90 min";
  input.setCustomValidity(Number.isNaN(found) ? `'${input.value}' ${such}. What stood here still counts.` : "");
  return found;
}

/** No numbers, no window; one that opens from 0 may stay open for ever. */
const between = (opening, closing) =>
  (opening ?? null) === null && (closing ?? null) === null ? null : [opening ?? 0, closing ?? null];

function line(model, { location, where, depot }) {
  const cells = columns(model).map((column) => {
    if (column.customer && (depot || (column.only && !location[column.only]))) return h("td");
    const label = `${column.title} of ${location.name}`;
    const cell = `${location.id} ${column.title}`;
    return h(
      "td",
      { "data-where": `${where}.${column.field}`, class: column.wide ? "wide" : null },
      column.field === "kind" ? kind(location, label, cell) : value(column, location, label, cell),
    );
  });
  const only = depot && depotsOf(model).length === 1;
  return h(
    "tr",
    {
      "data-row": location.id,
      class: location.id === state.selected ? "on" : null,
      onfocusin: () => change({ selected: location.id }),
    },
    ...cells,
    h(
      "td",
      {},
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": `Delete ${location.name}`,
          disabled: running() || only,
          onclick: () => edit(remove(state.model, location.id)),
        },
        "✕",
      ),
    ),
  );
}

/** The location as the last change left it, which may be later than the row was drawn. */
const latest = ({ id }) => locations(state.model).find((location) => location.id === id);

function value(column, location, label, cell) {
  const input = h("input", {
    "aria-label": label,
    "data-cell": cell,
    disabled: running() || column.frozen,
    type: column.text || column.clock ? "text" : "number",
    maxlength: column.text ? state.limits.max_name : null,
    title: column.field === "name" ? location.name : null,
    placeholder: column.usual ?? null,
    step: "any",
    size: 1,
    onchange: () => {
      const found = entered(column, input);
      if (Number.isNaN(found)) markFaults();
      else edit(set(state.model, location.id, column.put(found, latest(location))));
    },
  });
  const shown = (value) => (column.clock && value != null ? clock(state.model, value) : (value ?? ""));
  input.value = shown(column.get(location));
  return input;
}

const kind = (location, label, cell) =>
  h(
    "select",
    {
      "aria-label": label,
      "data-cell": cell,
      disabled: running(),
      onchange: (event) => edit(set(state.model, location.id, { pickup: event.target.value === "pickup" })),
    },
    h("option", { value: "delivery", selected: !location.pickup }, "Delivery"),
    h("option", { value: "pickup", selected: location.pickup }, "Pickup"),
  );

/** A new location beside the first depot, from where it can be edited or dragged. */
function add(how) {
  const [{ x, y }] = state.model.depots;
  const model = how(state.model, x, y);
  edit(model);
  change({ selected: (how === addDepot ? model.depots : model.customers).at(-1).id });
}

// -- what is looked at

/** Goes to the cell of a fault. */
export function reveal({ list, index, field }) {
  if (list === "vehicles") {
    change({ tab: "vehicles" });
    const cell = `[data-where="vehicles[${index}].${field}"] :is(input, select)`;
    requestAnimationFrame(() => ($(cell) ?? $("#vehicles input"))?.focus());
    return;
  }
  const { id } = (list === "depots" ? depotsOf(state.model) : state.model.customers)[index];
  change({ tab: "table", selected: id });
  requestAnimationFrame(() => {
    const cell = (name) => $(`[data-where="${list}[${index}].${name}"] :is(input, select)`, root);
    (cell(same(field)) ?? cell("name")).focus();
  });
}

/** One cell holds the demand, whichever kind it is. */
const same = (field) => (field === "pickup" ? "delivery" : field);

function markFaults() {
  written(root, "depots", "customers");
}

/** Writes below the rows of a table what is wrong with them: by the service, and what cannot be read at all. */
export function written(root, ...lists) {
  for (const note of root.querySelectorAll(".note")) note.remove();
  for (const input of root.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  const note = (input, code, message) => {
    input.setAttribute("aria-invalid", "true");
    const words = h("td", { colspan: 16 }, h("code", {}, code), ` ${message}`);
    input.closest("tr").after(h("tr", { class: "note" }, words));
  };
  for (const fault of state.faults) {
    const place = placeOf(fault);
    const cell = lists.includes(place?.list) && $(`[data-where="${place.list}[${place.index}].${same(place.field)}"]`, root);
    if (cell) note($("input, select", cell), fault.code, fault.message);
  }
  for (const input of root.querySelectorAll("input:invalid")) {
    if (input.validity.customError) note(input, "bad-syntax", input.validationMessage);
  }
}

/** The chosen location stands out. */
function markRow() {
  for (const row of root.querySelectorAll("[data-row]")) {
    row.classList.toggle("on", Number(row.dataset.row) === state.selected);
  }
  if (!root.contains(document.activeElement)) $("tr.on", root)?.scrollIntoView({ block: "nearest" });
}

subscribe((keys) => {
  if (!state.model) return;
  if (keys.has("opened")) page = 0;
  if (keys.has("selected") && state.selected !== null) {
    const at = rows(state.model).findIndex(({ location }) => location.id === state.selected);
    if (at >= 0) page = Math.floor(at / PAGE);
  }
  if (root.hidden) return;
  if (drawn.model !== state.model || drawn.page !== page || drawn.locked !== running() || keys.has("limits")) draw();
  else if (keys.has("faults") || keys.has("tab")) markFaults();
  if (keys.has("selected") || keys.has("tab")) markRow();
});
