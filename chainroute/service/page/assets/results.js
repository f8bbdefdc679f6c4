/** The solution in words: its cost, the stages of the run and how they compare, and the list of routes. */

import { mark } from "./chart.js";
import { $, count, h, show } from "./dom.js";
import { depotsOf, locations } from "./problem.js";
import { colour, SOURCES, stages } from "./solution.js";
import { change, running, state, subscribe } from "./state.js";

function drawHeadline() {
  const { shown, run } = state;
  const waiting = running() ? "Waiting for the first routes…" : "Not solved yet";
  const unit = state.model.globe && !state.model.distances ? " m" : "";
  $("#headline").replaceChildren(
    h("span", { class: "cost", id: "cost" }, shown ? show(shown.cost, 7) + unit : "–"),
    h("span", {}, shown ? count(shown.routes.length, "route") : waiting),
  );
  const violations = run?.violations ?? [];
  const verdicts = {
    edited: violations.length
      ? ["bad", "No longer feasible after the edit:"]
      : ["good", "Edited, and still feasible."],
    faulty: ["bad", "The edit has a fault; the routes are from before it."],
  };
  const [mood, words] = verdicts[run?.status] ?? [];
  $("#verdict").replaceChildren(
    ...(words ? [h("p", { class: mood }, words)] : []),
    ...(violations.length
      ? [
          h(
            "ul",
            {},
            violations.slice(0, 6).map((v) => h("li", {}, h("code", {}, v.code), ` ${v.message}`)),
          ),
        ]
      : []),
    ...(run?.notes ?? []).map((note) => h("p", { class: "hint" }, note)),
  );
}

/** A button per source shows the best it found; a second list picks one to compare with. */
function drawStages() {
  const { run, shown, against } = state;
  const found = stages(run);
  $("#stages").replaceChildren(
    ...found.map((shot) =>
      h(
        "button",
        {
          type: "button",
          class: "stage",
          "aria-pressed": String(shot.source === shown?.source),
          "data-source": shot.source,
          onclick: () => change({ shown: shot }),
        },
        mark(shot.source),
        h("span", {}, SOURCES[shot.source]),
        h("b", {}, show(shot.cost, 6)),
      ),
    ),
  );
  $("#compare").hidden = found.length < 2;
  const select = $("#against");
  select.replaceChildren(
    h("option", { value: "" }, "nothing"),
    ...found.map((shot) => h("option", { value: shot.source }, SOURCES[shot.source])),
  );
  select.value = against?.source ?? "";
  const gap = against && shown ? shown.cost - against.cost : null;
  const sign = gap > 0 ? "+" : gap < 0 ? "−" : "±";
  $("#difference").textContent =
    gap === null
      ? ""
      : `${sign}${show(Math.abs(gap), 4)} (${sign}${show((100 * Math.abs(gap)) / against.cost, 3)} %)`;
}

$("#against").addEventListener("change", (event) => {
  change({ against: stages(state.run).find((shot) => shot.source === event.target.value) ?? null });
});

function drawRoutes() {
  const { model, shown, pinned } = state;
  const places = new Map(locations(model).map((location) => [location.id, location]));
  const many = depotsOf(model).length > 1;
  const list = $("#routes");
  const focused = document.activeElement?.closest("#routes li")?.dataset.number;
  list.replaceChildren(
    ...(shown?.routes ?? []).map((route) => {
      const open = route.number === pinned;
      const button = h(
        "button",
        { type: "button", "aria-expanded": String(open) },
        h("span", { class: "number" }, String(route.number)),
        h(
          "span",
          {},
          count(route.visits.length, "stop"),
          many ? ` · ${places.get(route.depot)?.name ?? ""}` : null,
        ),
        h("span", { class: "length" }, show(route.length)),
        h("meter", {
          min: 0,
          max: model.capacity,
          value: route.load,
          "aria-label": `Load ${show(route.load)} of ${show(model.capacity)}`,
        }),
      );
      const item = h(
        "li",
        { "data-number": route.number },
        button,
        ...(open ? [stopTable(route, places)] : []),
      );
      item.style.setProperty("--colour", colour(route.slot));
      return item;
    }),
  );
  if (focused) $(`li[data-number="${focused}"] button`, list)?.focus();
  if (!shown) list.append(h("li", { class: "empty" }, "No routes yet."));
}

const stopTable = (route, places) =>
  h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Stop", "Arrives", "Leaves", "Load"].map((title) => h("th", { scope: "col" }, title)),
      ),
    ),
    h(
      "tbody",
      {},
      route.stops.map((stop) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, places.get(stop.id)?.name ?? ""),
          ...[stop.arrival, stop.departure, stop.load].map((value) => h("td", {}, show(value))),
        ),
      ),
    ),
  );

const list = $("#routes");
const numberOf = (event) => Number(event.target.closest("[data-number]")?.dataset.number) || null;
list.addEventListener("pointerover", (event) => change({ hover: numberOf(event) }));
list.addEventListener("pointerleave", () => change({ hover: null }));
list.addEventListener("focusin", (event) => change({ hover: numberOf(event) }));
list.addEventListener("focusout", () => change({ hover: null }));
list.addEventListener("click", (event) => {
  if (!event.target.closest("button")) return;
  const number = numberOf(event);
  change({ pinned: state.pinned === number ? null : number, selected: null });
});

/** The item of the route looked at stands out. */
function markRoute() {
  for (const item of list.children) {
    item.classList.toggle("on", Number(item.dataset.number) === (state.hover ?? state.pinned));
  }
}

subscribe((keys) => {
  if (!state.model) return;
  if (["run", "shown", "against", "model"].some((key) => keys.has(key))) {
    drawHeadline();
    drawStages();
  }
  if (["shown", "pinned", "model"].some((key) => keys.has(key))) drawRoutes();
  if (["shown", "pinned", "hover"].some((key) => keys.has(key))) markRoute();
});
