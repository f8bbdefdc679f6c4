/** The page: opening problems, and what runs through all of it. */

import * as api from "./api.js";
import { $, h } from "./dom.js";
import { number } from "./editor.js";
import { possible, save } from "./export.js";
import { removeChosen } from "./gestures.js";
import { fit, zoom } from "./map.js";
import { blank, fromDocument, scattered } from "./problem.js";
import { recall } from "./keep.js";
import { cancel, solve } from "./run.js";
import { say, trying } from "./say.js";
import { change, open, redo, running, state, subscribe, undo } from "./state.js";
import "./card.js";
import "./chart.js";
import "./gantt.js";
import "./results.js";

// -- opening

function start(model, word) {
  if (running()) return;
  open(model);
  say(`${word} ${model.name}.`);
}

$("#example").addEventListener("change", async (event) => {
  const name = event.target.value;
  const document = name && (await trying(() => api.example(name)));
  if (document) start(fromDocument(document), "Opened");
});

let chosen = null; // the file opened last

/** What is wrong with a file is shown beside the file: the fields of the form are not about it. */
async function openFile(file, index = "") {
  if (!file || running()) return;
  chosen = file;
  let several = Boolean(index);
  const told = (fault) => {
    several ||= fault.where === "index";
    return { ...fault, where: "file", message: [fault.where, fault.message].filter(Boolean).join(": ") };
  };
  const answer = await trying(() => api.read(file, index), told);
  $("#index-label").hidden = !several;
  if (!answer) return;
  $("#example").value = "";
  start(fromDocument(answer.problem), "Opened");
  if (answer.warnings?.length) say(answer.warnings.join(" "));
}

$("#open").addEventListener("click", () => $("#file").click());
$("#file").addEventListener("change", async ({ target }) => {
  await openFile(target.files[0]);
  target.value = ""; // the same file may be mended and opened again
});
$("#index").addEventListener("change", ({ target }) => openFile(chosen, target.value));
$("#blank").addEventListener("click", () => {
  $("#example").value = "";
  start(blank(), "New");
  $("[name=tool][value=customer]").click();
});
$("#scatter").addEventListener("click", () => {
  const count = Math.round(Math.min($("#count").max, Math.max(1, number($("#count")) ?? 50)));
  $("#example").value = "";
  start(scattered(count, number($("#seed")) ?? 0), "Made");
});

$("#count").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault(); // which would solve what is there
  $("#scatter").click();
});

let inside = 0; // dragenter and dragleave come for every element passed
addEventListener("dragenter", () => ($("#drop").hidden = ++inside === 0));
addEventListener("dragleave", () => ($("#drop").hidden = --inside === 0));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  inside = 0;
  $("#drop").hidden = true;
  openFile(event.dataTransfer.files[0]);
});

// -- themes, settings, buttons, keys

const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  localStorage.setItem("theme", theme);
  document.documentElement.dataset.theme = theme;
  $("#theme b").textContent = theme;
}

setTheme(localStorage.getItem("theme") ?? "auto");
$("#theme").addEventListener("click", () => {
  const now = THEMES.indexOf(document.documentElement.dataset.theme);
  setTheme(THEMES[(now + 1) % THEMES.length]);
});

$("#settings-open").addEventListener("click", () => {
  $("#tiles").value = localStorage.getItem("tiles") ?? "";
  $("#token").value = api.token.get();
  $("#settings").showModal();
});
$("#settings").addEventListener("close", ({ target }) => {
  if (target.returnValue !== "save") return;
  localStorage.setItem("tiles", $("#tiles").value.trim());
  api.token.set($("#token").value.trim());
  if (state.model) fit();
  else begin();
});

for (const button of document.querySelectorAll("[data-export]")) {
  button.addEventListener("click", () => save(button.dataset.export));
}
$("#setup").addEventListener("submit", (event) => {
  event.preventDefault();
  solve();
});
$("#cancel").addEventListener("click", cancel);
$("#undo").addEventListener("click", undo);
$("#redo").addEventListener("click", redo);
$("#delete").addEventListener("click", removeChosen);
$("#fit").addEventListener("click", fit);
$("#zoom-in").addEventListener("click", () => zoom(1.3));
$("#zoom-out").addEventListener("click", () => zoom(1 / 1.3));

addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=checkbox], [type=radio])");
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") $("#setup").requestSubmit();
  else if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) undo();
  else if ((event.ctrlKey || event.metaKey) && /^(Z|y)$/.test(event.key) && !typing) redo();
  else if (event.key === "Escape") running() ? cancel() : change({ pinned: null, selected: null });
});

subscribe(() => {
  const busy = running();
  $("#solve").setAttribute("aria-disabled", String(busy)); // not `disabled`, which would lose the focus
  $("#cancel").disabled = !busy;
  $("#progress").value = busy ? Math.min(1, state.seconds / (state.run.limit || 1)) : 0;
  $("#delete").disabled = state.selected === null || busy;
  $("#warm").disabled = !state.shown || busy;
  for (const button of document.querySelectorAll("[data-export]")) {
    button.disabled = !possible(button.dataset.export);
  }
});

/** The page opens with what was last worked on, or with the first example. */
async function begin() {
  const health = await trying(api.health);
  if (health) {
    $("#count").max = health.limits.max_customers;
    $("#time-limit").max = health.limits.max_time_limit;
  }
  const list = await trying(api.examples);
  if (!list) return;
  for (const { name, title, customers, variant } of list) {
    $("#example").append(h("option", { value: name, title }, `${name} · ${variant}, ${customers} customers`));
  }
  if (recall()) return say(`Your work on ${state.model.name} is back.`);
  const first = list.find(({ name }) => name === "dairy") ?? list[0];
  $("#example").value = first.name;
  start(fromDocument(await api.example(first.name)), "Opened");
}

begin();
