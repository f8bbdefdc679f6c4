/** The page: themes, settings, buttons and keys. */

import * as api from "./api.js";
import { $ } from "./dom.js";
import { possible, save } from "./export.js";
import { removeChosen } from "./gestures.js";
import { fit, zoom } from "./map.js";
import { begin } from "./opening.js";
import { cancel, solve } from "./run.js";
import { say } from "./say.js";
import { change, redo, running, state, subscribe, undo } from "./state.js";
import "./card.js";
import "./chart.js";
import "./dock.js";
import "./gantt.js";
import "./results.js";
import "./routes.js";
import "./sheets.js";
import "./streets.js";
import "./vehicles.js";

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
  $("#credit-text").value = localStorage.getItem("credit") ?? "";
  $("#token").value = api.token.get();
  $("#settings").showModal();
});
$("#settings").addEventListener("close", ({ target }) => {
  if (target.returnValue !== "save") return;
  localStorage.setItem("tiles", $("#tiles").value.trim());
  localStorage.setItem("credit", $("#credit-text").value.trim());
  api.token.set($("#token").value.trim());
  if (state.model) fit();
  if ($("#example").length < 2) begin(); // the service may have asked for the token
});

for (const button of document.querySelectorAll("[data-export]")) {
  button.addEventListener("click", () => save(button.dataset.export));
}
$("#setup").addEventListener("submit", (event) => {
  event.preventDefault();
  solve();
});
$("#cancel").addEventListener("click", cancel);
/** Goes back or forth, and says to where. */
const travel = (step, word) => () => step() && say(`${word}: ${state.model.name} as it was.`);
const [back, forth] = [travel(undo, "Undone"), travel(redo, "Redone")];
$("#undo").addEventListener("click", back);
$("#redo").addEventListener("click", forth);
$("#delete").addEventListener("click", removeChosen);
$("#fit").addEventListener("click", fit);
$("#zoom-in").addEventListener("click", () => zoom(1.3));
$("#zoom-out").addEventListener("click", () => zoom(1 / 1.3));

addEventListener("keydown", (event) => {
  if ($("#settings").open) return; // whose keys are its own: Escape closes it, and ends no run
  const typing = event.target.matches("input:not([type=checkbox], [type=radio])");
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") $("#setup").requestSubmit();
  else if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) back();
  else if ((event.ctrlKey || event.metaKey) && /^(Z|y)$/.test(event.key) && !typing) forth();
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

begin();
