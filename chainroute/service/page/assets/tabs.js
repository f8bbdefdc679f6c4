/** The tabs of the dock. */

import { $ } from "./dom.js";
import { change, state, subscribe } from "./state.js";

const tabs = [...document.querySelectorAll("[role=tab]")];
const panel = (tab) => tab.getAttribute("aria-controls");

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => change({ tab: panel(tab) }));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    change({ tab: panel(next) });
    next.focus();
  });
}

subscribe((keys) => {
  if (!keys.has("tab")) return;
  for (const tab of tabs) {
    const on = panel(tab) === state.tab;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    $(`#${panel(tab)}`).hidden = !on;
  }
});
