/** The solution in words: its cost, the judge's verdict, the stages of the run and how they compare. */

import * as api from "./api.js";
import { mark } from "./chart.js";
import { $, count, h, show } from "./dom.js";
import { toDocument } from "./problem.js";
import { absences, SOURCES, stages, toDocument as routesDocument } from "./solution.js";
import { change, running, state, subscribe } from "./state.js";
import { cost } from "./units.js";

/** What a cost is made of: "distance 40 + prizes 59". */
const parts = (found) =>
  Object.entries(found)
    .filter(([, value]) => value)
    .map(([name, value]) => `${name} ${show(value)}`)
    .join(" + ");

/** Who is left out; why, as soon as the judge has said so. */
const leftOut = ({ leftOut: names }) =>
  h(
    "div",
    { id: "left-out" },
    h("p", { class: "hint" }, "Left out:"),
    h("ul", {}, names.map((one) => h("li", {}, one.customer ? `${one.customer}: ${one.message}` : one))),
  );

/** Asks the judge why customers are left out, where a run has only said who. */
async function explain() {
  const { model, shown } = state;
  if (running() || !shown?.leftOut?.some((one) => !one.customer)) return;
  const routes = routesDocument(model, shown);
  const verdict = await api.check(toDocument(model), routes, model.roads).catch(() => null);
  const reasons = verdict?.solution.left_out;
  if (reasons && state.shown === shown) change({ shown: { ...shown, leftOut: reasons } });
}

function drawHeadline() {
  const { model, shown, run } = state;
  const waiting = running() ? "Waiting for the first routes…" : "Not solved yet";
  $("#headline").replaceChildren(
    h("span", { class: "cost", id: "cost" }, shown ? cost(model, shown.cost, 6) : "–"),
    h("span", {}, shown ? count(shown.routes.length, "route") : waiting),
  );
  const violations = run?.violations ?? [];
  const verdicts = {
    edited: violations.length
      ? ["bad", "No longer feasible after the edit:"]
      : ["good", "Edited, and still feasible."],
    opened: violations.length ? ["bad", "Not feasible:"] : ["good", "Judged: feasible."],
    faulty: ["bad", "The edit has a fault; the routes are from before it."],
    unjudged: ["bad", "The edit is not judged yet; the routes are from before it."],
  };
  const [mood, words] = verdicts[run?.status] ?? [];
  $("#verdict").replaceChildren(
    ...(shown?.parts ? [h("p", { class: "hint", id: "parts" }, parts(shown.parts))] : []),
    ...(shown?.leftOut?.length ? [leftOut(shown)] : []),
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
    ...(shown?.straight ? [h("p", { class: "hint", id: "straight" }, `Lines are straight: ${shown.straight}`)] : []),
    ...(run?.notes ?? []).map((note) => h("p", { class: "hint" }, note)),
  );
}

/** A button per source shows the best it found; a second list picks one to compare with. */
function drawStages() {
  const { run, shown, against } = state;
  const found = stages(run);
  const whole = found.filter((shot) => shot.routes);
  $("#stages").replaceChildren(
    ...found.map((shot) =>
      h(
        "button",
        {
          type: "button",
          class: "stage",
          "aria-pressed": String(shot.source === shown?.source),
          "data-source": shot.source,
          disabled: !shot.routes,
          title: shot.routes ? null : "Better routes came before these could be drawn",
          onclick: () => change({ shown: shot }),
        },
        mark(shot.source),
        h("span", {}, SOURCES[shot.source]),
        h("b", {}, cost(state.model, shot.cost, 5)),
      ),
    ),
    ...absences(run).map(([source, reason]) =>
      h(
        "p",
        { class: "absent hint" },
        mark(source),
        h("span", {}, h("b", {}, SOURCES[source]), `: ${reason}`),
      ),
    ),
  );
  $("#compare").hidden = whole.length < 2;
  const select = $("#against");
  select.replaceChildren(
    h("option", { value: "" }, "nothing"),
    ...whole.map((shot) => h("option", { value: shot.source }, SOURCES[shot.source])),
  );
  select.value = against?.source ?? "";
  const gap = against && shown ? shown.cost - against.cost : null;
  const sign = gap > 0 ? "+" : gap < 0 ? "−" : "±";
  const difference = () => {
    const share = show((100 * Math.abs(gap)) / against.cost, 3);
    return `${sign}${cost(state.model, Math.abs(gap), 3)} (${sign}${share} %)`;
  };
  $("#difference").textContent = gap === null ? "" : difference();
}

$("#against").addEventListener("change", (event) => {
  change({ against: stages(state.run).find((shot) => shot.source === event.target.value) ?? null });
});

subscribe((keys) => {
  if (!state.model || !["run", "shown", "against", "model"].some((key) => keys.has(key))) return;
  drawHeadline();
  drawStages();
  if (keys.has("shown") || keys.has("run")) explain();
});
