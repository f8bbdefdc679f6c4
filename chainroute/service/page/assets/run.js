/** Solving: a job of the service from its order to its end. */

import * as api from "./api.js";
import { $, count } from "./dom.js";
import { number } from "./editor.js";
import { toDocument } from "./problem.js";
import { say, trying } from "./say.js";
import { snapshot, toDocument as routesDocument } from "./solution.js";
import { change, remember, running, state } from "./state.js";
import { cost } from "./units.js";

let ordering = false; // between Solve and the service's answer
let begun = 0; // when the job began to run, on the page's clock

/** Sends the problem on the page, and follows its job to the end. */
export async function solve() {
  if (running() || ordering || !state.model) return;
  ordering = true;
  const { model } = state;
  const limit = number($("#time-limit"));
  const warm = $("#warm").checked ? state.shown : null;
  if (model.roads) say("Asking for the roads…");
  const order = {
    problem: toDocument(model),
    time_limit: limit,
    seed: number($("#seed")),
    effort: { polish: $("#method").value === "polish" },
    initial: warm ? routesDocument(model, warm) : null,
  };
  const answer = await trying(() => api.solve(order, model.roads)).finally(() => (ordering = false));
  if (!answer) return;
  if (state.model !== model) {
    api.cancel(answer.id).catch(() => null);
    return say("The problem was edited meanwhile: solve it again.");
  }
  remember();
  const polish = $("#method").value === "polish";
  const run = { id: answer.id, status: answer.status, snapshots: [], limit, notes: [], polish };
  change({ run, seconds: 0, shown: warm, unjudged: false, against: null, pinned: null });
  const clock = setInterval(tick, 100);
  const queue = setInterval(() => waits(answer.id), 1000);
  if (answer.status === "queued") waits(answer.id);
  else runs();
  const end = await trying(() => follow(answer.id, model));
  clearInterval(clock);
  clearInterval(queue);
  finish(end ?? { status: "failed", history: state.run.snapshots, notes: [] }, model);
}

/** The job's time is counted from here on. */
function runs() {
  begun = performance.now();
  change({ run: { ...state.run, status: "running" } });
  say("Solving…");
}

function tick() {
  if (state.run.status === "running") change({ seconds: (performance.now() - begun) / 1000 });
}

/** Asks where in the queue the job is, for as long as it waits. */
async function waits(id) {
  if (state.run.status !== "queued") return;
  const { status, position } = await api.job(id).catch(() => ({}));
  if (state.run.id !== id || state.run.status !== "queued") return;
  if (status === "running") runs();
  else if (position === 1) say("Waiting: next in the queue.");
  else if (position) say(`Waiting: ${position - 1} before it in the queue.`);
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
  if (state.run.status === "queued") runs();
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
  change({ run: { ...state.run, status: job.status, notes: job.notes, withoutPolicy: job.without_policy, snapshots, policy }, shown });
  if (job.error) change({ faults: job.error.faults });
  const routes = shown && count(shown.routes.length, "route");
  const result = shown ? ` Cost ${cost(model, shown.cost, 6)}, ${routes}.` : "";
  say({ done: "Done.", cancelled: "Cancelled.", failed: "Failed." }[job.status] + result);
  if (document.activeElement === $("#cancel")) $("#solve").focus();
}

/** Ends the run; the best so far stays. */
export function cancel() {
  if (running()) trying(() => api.cancel(state.run.id));
}
