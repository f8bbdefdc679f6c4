/** Solving: a job of the service from its order to its end, and the judge's view of edits. */

import * as api from "./api.js";
import { $, count, show } from "./dom.js";
import { number } from "./editor.js";
import { toDocument } from "./problem.js";
import { say, trying } from "./say.js";
import { snapshot, toDocument as routesDocument } from "./solution.js";
import { change, remember, running, state, subscribe } from "./state.js";

let ordering = false; // between Solve and the service's answer

/** Sends the problem on the page, and follows its job to the end. */
export async function solve() {
  if (running() || ordering) return;
  ordering = true;
  const { model } = state;
  const limit = number($("#time-limit"));
  const warm = $("#warm").checked ? state.shown : null;
  const answer = await trying(() =>
    api.solve({
      problem: toDocument(model),
      time_limit: limit,
      seed: number($("#seed")),
      effort: { polish: $("#method").value === "polish" },
      initial: warm ? routesDocument(model, warm) : null,
    }),
  ).finally(() => (ordering = false));
  if (!answer) return;
  remember();
  const run = { id: answer.id, status: answer.status, snapshots: [], limit, notes: [] };
  change({ run, seconds: 0, shown: warm, against: null, pinned: null });
  say("Solving…");
  const begun = performance.now();
  const clock = setInterval(() => change({ seconds: (performance.now() - begun) / 1000 }), 100);
  const end = await trying(() => follow(answer.id, model));
  clearInterval(clock);
  finish(end ?? { status: "failed", history: [], notes: [] }, model);
}

/** Takes up each improvement; returns the job when it has ended. */
async function follow(id, model) {
  for await (const { event, data } of api.events(id)) {
    if (event === "end") return data;
    improve(snapshot(model, data, state.shown));
  }
  for (;;) {
    const job = await api.job(id); // the stream broke off
    if (!["queued", "running"].includes(job.status)) return job;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function improve(shot) {
  const { run, shown } = state;
  const snapshots = [...run.snapshots, shot];
  change({ run: { ...run, status: "running", snapshots }, shown: shot.routes ? shot : shown });
}

/** The job's own history has the last word: some improvements came too fast for the stream. */
function finish(job, model) {
  const seen = state.run.snapshots;
  const snapshots = job.history.map((point) => {
    const known = seen.find(
      (shot) => shot.routes && shot.cost === point.cost && shot.source === point.source,
    );
    const solution = [job.solution, job.first].find((document) => document?.cost === point.cost);
    return known ?? snapshot(model, { ...point, solution }, state.shown);
  });
  const shown = snapshots.findLast((shot) => shot.routes) ?? state.shown;
  const own = job.first && { source: "policy", cost: job.first.cost, solution: job.first };
  const policy = own && snapshot(model, own, shown);
  change({ run: { ...state.run, status: job.status, notes: job.notes, snapshots, policy }, shown });
  if (job.error) change({ faults: job.error.faults });
  const result = shown ? ` Cost ${show(shown.cost, 7)}, ${count(shown.routes.length, "route")}.` : "";
  say({ done: "Done.", cancelled: "Cancelled.", failed: "Failed." }[job.status] + result);
  if (document.activeElement === $("#cancel")) $("#solve").focus();
}

/** Ends the run; the best so far stays. */
export function cancel() {
  if (running()) trying(() => api.cancel(state.run.id));
}

// -- edits: the judge looks at them at once, and at the routes on show

let pending = null;
let asked = null;

function recheck() {
  clearTimeout(pending);
  asked?.abort();
  pending = setTimeout(async () => {
    const { model, shown } = state;
    asked = new AbortController();
    try {
      const routes = shown ? routesDocument(model, shown) : { routes: [] };
      const verdict = await api.check(toDocument(model), routes, asked.signal);
      if (state.model !== model || running()) return;
      change({ faults: [] });
      if (!shown) return;
      const edited = { source: "edited", seconds: 0, cost: verdict.cost, solution: verdict.solution };
      const shot = snapshot(model, edited, shown);
      const run = { status: "edited", violations: verdict.violations, snapshots: [shot] };
      change({ run, seconds: 0, shown: shot, against: null });
    } catch (error) {
      if (error.name !== "AbortError" && !(error instanceof api.Refusal)) throw error;
      if (!error.faults || !model.customers.length || state.model !== model || running()) return;
      const run = state.run && { ...state.run, status: "faulty", violations: [] };
      change({ faults: error.faults, run });
    }
  }, 250);
}

subscribe((keys) => {
  if (keys.has("model") && !keys.has("opened") && !keys.has("restored")) recheck();
});
