/** The divider between map and details: dragged, or moved by arrow keys; its place is kept. */

import { $ } from "./dom.js";

const divider = $("#divider");
const dock = $("#dock");
const [LEAST, STEP] = [120, 24]; // pixels

const most = () => Math.max(LEAST, $("main").clientHeight - 260); // pixels that leave the map in view

function resize(height) {
  const wanted = Math.round(Math.min(Math.max(height, LEAST), most()));
  $("main").style.setProperty("--dock", `${wanted}px`);
  divider.setAttribute("aria-valuenow", String(wanted));
  divider.setAttribute("aria-valuemin", String(LEAST));
  divider.setAttribute("aria-valuemax", String(most()));
  localStorage.setItem("dock", String(wanted));
}

divider.addEventListener("pointerdown", (event) => {
  event.preventDefault();
  divider.setPointerCapture(event.pointerId);
  divider.focus();
});
divider.addEventListener("pointermove", (event) => {
  if (divider.hasPointerCapture(event.pointerId)) resize(dock.getBoundingClientRect().bottom - event.clientY);
});
divider.addEventListener("keydown", (event) => {
  const by = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
  if (!by) return;
  event.preventDefault();
  resize(dock.clientHeight + by);
});

if (localStorage.getItem("dock")) resize(Number(localStorage.getItem("dock")));
