/** The form: switches and numbers of the problem, and the service's faults beside the fields they are about. */

import { $, h } from "./dom.js";
import { beyond } from "./fleet.js";
import { fixed, legible, placeOf, turn, variantName } from "./problem.js";
import { change, edit, running, state, subscribe } from "./state.js";
import { reveal } from "./table.js";
import { daily, metric } from "./units.js";

const CHECKBOXES = {
  "open-routes": "open",
  limited: "limited",
  windows: "windows",
  several: "several",
  roads: "roads",
};
const COSTS = { "fixed-cost": "fixed_cost", "distance-cost": "cost_per_distance", "time-cost": "cost_per_time" };
const NUMBERS = { capacity: "capacity", fleet: "fleet", limit: "limit", speed: "speed" };

for (const [id, key] of Object.entries(CHECKBOXES)) {
  $(`#${id}`).addEventListener("change", (event) => edit(turn(state.model, key, event.target.checked)));
}
for (const [id, key] of Object.entries(NUMBERS)) {
  $(`#${id}`).addEventListener("change", (event) => edit({ ...state.model, [key]: number(event.target) }));
}
for (const [id, key] of Object.entries(COSTS)) {
  $(`#${id}`).addEventListener("change", ({ target }) => {
    edit({ ...state.model, costs: { ...state.model.costs, [key]: number(target) } });
  });
}
$("#objective").addEventListener("change", ({ target }) => edit({ ...state.model, objective: target.value }));
for (const radio of document.querySelectorAll("[name=backhaul]")) {
  radio.addEventListener("change", () => edit(turn(state.model, "backhaul", radio.value)));
}
for (const radio of document.querySelectorAll("[name=tool]")) {
  radio.addEventListener("change", () => change({ tool: radio.value }));
}
$("#name").addEventListener("change", (event) => edit({ ...state.model, name: legible(event.target.value) }));

/** What stands in a field; nothing, or nonsense, is null, which the service refuses where it must. */
export const number = (input) => (input.value.trim() === "" ? null : Number(input.value));

function fill() {
  const { model } = state;
  for (const [id, key] of Object.entries(CHECKBOXES)) $(`#${id}`).checked = model[key];
  for (const [id, key] of Object.entries(NUMBERS)) $(`#${id}`).value = model[key] ?? "";
  for (const [id, key] of Object.entries(COSTS)) $(`#${id}`).value = model.costs[key] ?? "";
  $("#objective").value = model.objective;
  const costs = model.objective === "money" || Object.values(model.costs).some((cost) => cost !== null);
  $("#costs").hidden = !costs || model.objective === "time";
  $("#distance-cost").placeholder = model.objective === "money" ? "0" : "1";
  $(`[name=backhaul][value=${model.backhaul}]`).checked = true;
  $("#name").value = model.name;
  $("#limit-label").hidden = !model.limited;
  $("#speed-label span").textContent = daily(model) && metric(model) ? "Speed, m/s" : "Speed";
  $("#speed-label").hidden = !model.windows || Boolean(model.durations) || model.roads;
  $("#roads-label").hidden = !(model.globe && (state.roads || model.roads)) || fixed(model);
  $("#several").disabled = fixed(model) && model.depots.length === 1;
  $("#variant").textContent = variantName(model);
  $("#variant").title = inWords(model);
}

function inWords(model) {
  const parts = [
    model.open && "open routes",
    model.backhaul === "linehauls-first" && "linehauls before backhauls",
    model.backhaul === "mixed" && "mixed linehauls and backhauls",
    model.limited && "distance limit",
    model.windows && "time windows",
    model.several && "several depots",
  ];
  return ["Capacity", ...parts.filter(Boolean), ...beyond(model)].join(", ");
}

// -- faults

const isMarked = (fault) => fieldOf(fault) !== null;

/** The input of the form that a fault is about, or the place that is kept for it. */
function fieldOf(fault) {
  const place = placeOf(fault);
  return place && !place.list ? $(`[data-where="${place.field}"]`) : null;
}

function clearMarks() {
  for (const note of document.querySelectorAll("#setup p.fault, dialog p.fault")) note.remove();
  for (const input of document.querySelectorAll("#setup [aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
}

const inFull = ({ code, message, remedy }) => [h("code", {}, code), ` ${message} ${remedy ?? ""}`];

/** Beside its field if the form has it; all others above the map, with a way to the table's cell. */
function drawFaults() {
  clearMarks();
  const marked = state.faults.filter(isMarked);
  for (const [i, fault] of marked.entries()) {
    const field = fieldOf(fault);
    const note = h("p", { class: "fault", id: `fault-${i}` }, inFull(fault));
    if (field.matches(".faults")) {
      field.append(note);
      continue;
    }
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", note.id);
    field.closest(".numbers").after(note);
  }
  const others = state.faults.filter((fault) => !isMarked(fault));
  const box = $("#faults");
  box.hidden = !others.length;
  box.replaceChildren(
    h(
      "ul",
      {},
      others.map((fault) => {
        const place = placeOf(fault);
        const where = place?.list
          ? h("button", { type: "button", class: "quiet", onclick: () => reveal(place) }, fault.where)
          : fault.where
            ? h("b", {}, fault.where)
            : null;
        return h("li", {}, h("code", {}, fault.code), " ", where, ` ${fault.message} ${fault.remedy ?? ""}`);
      }),
    ),
    h(
      "button",
      { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: () => change({ faults: [] }) },
      "✕",
    ),
  );
}

subscribe((keys) => {
  if (state.model && (keys.has("model") || keys.has("roads"))) fill();
  if (keys.has("faults")) drawFaults();
  if (keys.has("run")) {
    for (const part of document.querySelectorAll("fieldset.editing")) part.disabled = running();
  }
});
