/** What is worked on: examples, files, links, new sketches, and what the page begins with. */

import * as api from "./api.js";
import { $, h } from "./dom.js";
import { number } from "./editor.js";
import { propose, show } from "./judge.js";
import { recall } from "./keep.js";
import { fromAddress } from "./link.js";
import { blank, blankMap, fromDocument, scattered } from "./problem.js";
import { say, trying } from "./say.js";
import { change, open, running, state, subscribe } from "./state.js";

/** A link is to what it was made of; what `undo` brings back need not be the example that was chosen last. */
subscribe((keys) => {
  if (keys.has("restored")) $("#example").value = "";
  if (["model", "shown"].some((key) => keys.has(key))) $("#link-label").hidden = true;
});

let openings = 0; // so far

/** What tells whether nothing was opened since: what takes longer to read does not replace what came later. */
function opening() {
  const mine = ++openings;
  return () => mine === openings;
}

/** Opens a problem, with routes if there are any and the judge's verdict on them. */
function start(model, word, verdict = null, notes = []) {
  if (running()) return say("Cancel the run first.");
  open(model);
  if (verdict) show(model, verdict, "opened");
  say([`${word} ${model.name}.`, ...notes].join(" "));
}

$("#example").addEventListener("change", async (event) => {
  const name = event.target.value;
  const isLast = opening();
  const document = name && (await trying(() => api.example(name)));
  if (document && isLast()) start(fromDocument(document), "Opened");
});

function sketch(model, word) {
  opening();
  $("#example").value = "";
  start(model, word);
}

for (const [id, make] of Object.entries({ blank, globe: blankMap })) {
  $(`#${id}`).addEventListener("click", () => {
    sketch(make(), "New");
    $("[name=tool][value=customer]").click();
  });
}
$("#scatter").addEventListener("click", () => {
  const count = Math.round(Math.min($("#count").max, Math.max(1, number($("#count")) ?? 50)));
  $("#count").value = count;
  sketch(scattered(count, number($("#seed")) ?? 0), "Made");
});
$("#count").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault(); // which would solve what is there
  $("#scatter").click();
});

// -- files

let chosen = null; // the file opened last

/** Opens a file with a problem, with a solution of the problem on show, or with both. What is wrong with it
 * is shown beside the button: the fields of the form are not about it. */
async function openFile(file, index = "") {
  if (!file) return;
  if (running()) return say("Cancel the run first.");
  chosen = file;
  const isLast = opening();
  let several = Boolean(index);
  const told = (fault) => {
    several ||= fault.path === "index";
    return { ...fault, path: "file", message: [fault.where, fault.message].filter(Boolean).join(": ") };
  };
  await trying(() => take(file, index, isLast), told);
  if (isLast()) $("#index-label").hidden = !several;
}

async function take(file, index, isLast) {
  const saved = await both(file);
  const problem = saved ? new File([JSON.stringify(saved.problem_document)], file.name) : file;
  let found;
  try {
    found = await read(problem, index, Boolean(saved?.roads && state.roads));
  } catch (refusal) {
    return isLast() && (await takeRoutes(file, refusal));
  }
  const verdict = saved?.routes && (await api.check(found.document, { routes: saved.routes }, found.roads));
  if (!isLast()) return;
  $("#example").value = "";
  start({ ...fromDocument(found.document), roads: found.roads }, "Opened", verdict, found.notes);
}

/** The problem in a file: on straight lines, unless it is sound on roads alone, say for want of a speed. */
async function read(file, index, roads) {
  try {
    const { problem, notes } = await api.read(file, index, roads);
    return { document: roads ? withoutMatrices(problem) : problem, roads, notes };
  } catch (refusal) {
    if (roads || !state.roads) throw refusal;
    return await read(file, index, true).catch((error) => {
      throw error.faults?.every(({ code }) => code.startsWith("roads-")) ? error : refusal;
    });
  }
}

/** The document without what the routing server has said, which is asked for again as places move. */
const withoutMatrices = ({ distances, durations, speed, ...rest }) => rest;

/** A file with a problem and the routes for it, if there are any, as this page saves and shares them. */
async function both(file) {
  if (!file.name.endsWith(".json") || file.size > state.limits.max_bytes) return null;
  const document = await file
    .text()
    .then(JSON.parse)
    .catch(() => null);
  return document?.problem_document ? document : null;
}

const STRANGE = ["unknown-format", "not-a-problem", "not-text"]; // codes of what is not what was asked for

/** Should a file hold no problem, it may hold routes for the one on show. */
async function takeRoutes(file, refusal) {
  const strange = (error) => error.faults?.some(({ code }) => STRANGE.includes(code));
  if (!strange(refusal) || file.size > state.limits.max_bytes) throw refusal;
  try {
    await propose(await sent(file), "opened");
    say(`Opened routes for ${state.model.name}.`);
  } catch (error) {
    throw strange(error) ? refusal : error;
  }
}

/** One file, or the tables of one problem, which then stand below each other in one (docs/spreadsheets.md). */
async function openFiles(files) {
  if (files.length < 2) return openFile(files[0]);
  const tables = files.toSorted((a, b) => /stops/i.test(b.name) - /stops/i.test(a.name));
  if (!tables.every(({ name }) => /\.csv$/i.test(name))) return say("One file at a time, unless they are CSV.");
  const texts = await Promise.all(tables.map(textOf));
  return openFile(new File([texts.join("\n\n")], tables[0].name));
}

/** What a file says: in UTF-8, or in one of the codes that Excel writes. */
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const wide = { "255 254": "utf-16le", "254 255": "utf-16be" }[bytes.slice(0, 2).join(" ")];
  try {
    return new TextDecoder(wide ?? "utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** A file as a document can hold it: a workbook, which is an archive and no text, as an address in base64. */
async function sent(file) {
  if ((await file.slice(0, 2).text()) !== "PK") return textOf(file);
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

$("#open").addEventListener("click", () => $("#file").click());
$("#file").addEventListener("change", async ({ target }) => {
  await openFiles([...target.files]);
  target.value = ""; // the same file may be corrected and opened again
});
$("#index").addEventListener("change", ({ target }) => openFile(chosen, target.value));

let inside = 0; // dragenter and dragleave come for every element passed
const carries = (event) => event.dataTransfer?.types.includes("Files");
addEventListener("dragenter", (event) => carries(event) && ($("#drop").hidden = ++inside === 0));
addEventListener("dragleave", (event) => carries(event) && ($("#drop").hidden = --inside === 0));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  inside = 0;
  $("#drop").hidden = true;
  openFiles([...event.dataTransfer.files]);
});

// -- links

let waiting = false; // whether a link is to be opened when the run has ended

/** Opens what the address holds, once; the work before it is an undo away. */
async function openLink() {
  const file = await fromAddress(location.hash);
  if (!file) return;
  waiting = running();
  if (waiting) return say("The link is opened when the run has ended; cancel it to open it now.");
  history.replaceState(null, "", location.pathname + location.search);
  await openFile(file);
}
addEventListener("hashchange", openLink);
subscribe((keys) => {
  if (!waiting || !keys.has("run") || running()) return;
  waiting = false;
  openLink();
});

// -- the beginning

const FIRST = "dairy";

/** A first example with routes, and what the judge said of them, that are stored with the page: there is
 * something to see at once, even while the service starts. */
async function first() {
  const stored = fetch("assets/first.json").then((response) => response.json());
  const isLast = opening();
  const model = fromDocument(await api.example(FIRST));
  if (!isLast()) return;
  start(model, "Opened");
  const verdict = await stored;
  if (state.model === model && !state.run) show(model, verdict, "opened");
}

async function listExamples() {
  const list = await trying(api.examples);
  $("#example").replaceChildren(
    h("option", { value: "" }, "Choose an example…"),
    ...(list ?? []).map(({ name, title, customers, variant }) =>
      h("option", { value: name, title }, `${name} · ${variant}, ${customers} customers`),
    ),
  );
}

/** The page opens with what was last worked on, or with the first example; then what its address holds. */
export async function begin() {
  const allowed = takeLimits();
  const listed = listExamples();
  const fresh = !state.model && !recall();
  if (fresh) await trying(first);
  else say(`Your work on ${state.model.name} is back.`);
  await Promise.all([allowed, listed]);
  if (fresh && state.opened === 1) $("#example").value = FIRST;
  if (state.model) await openLink();
}

async function takeLimits() {
  const health = await trying(api.health);
  if (!health) return;
  change({ limits: health.limits, roads: health.roads });
  $("#count").max = health.limits.max_customers;
  $("#time-limit").max = health.limits.max_time_limit;
  $("#name").maxLength = health.limits.max_name;
}
