/** Cost against time: a falling staircase, each improvement marked by what found it. */

import { $, s, show, ticks } from "./dom.js";
import { SOURCES } from "./solution.js";
import { change, state, subscribe } from "./state.js";
import { cost } from "./units.js";

const svg = $("#chart");
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [320, 140, 52, 10, 10, 22];

/** Each source has a shape as well as a colour. */
const SHAPES = {
  given: (x, y) => `M${x} ${y - 5}L${x + 5} ${y + 4}H${x - 5}Z`,
  policy: (x, y) => `M${x} ${y - 5.5}L${x + 5.5} ${y}L${x} ${y + 5.5}L${x - 5.5} ${y}Z`,
  polish: (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z`,
  search: (x, y) => `M${x - 3.6} ${y - 3.6}h7.2v7.2h-7.2Z`,
  construction: (x, y) => `M${x} ${y - 5}l4.5 3v6h-9v-6Z`,
  exact: (x, y) => `M${x - 5} ${y}h3.5v-5h3v5h3.5v3h-3.5v4h-3v-4h-3.5Z`,
  opened: (x, y) => `M${x - 4.5} ${y - 4}h9v8h-9Z`,
  edited: (x, y) => `M${x - 4} ${y - 4}h8l-4 8Z`,
};

/** The mark of a source, for legends. */
export const mark = (source) =>
  s(
    "svg",
    { viewBox: "-7 -7 14 14", class: `mark-${source}`, "aria-hidden": "true" },
    s("path", { d: SHAPES[source](0, 0) }),
  );

const told = (value) => cost(state.model, value, 5);
const price = (value) => cost(state.model, value);

function draw() {
  const shots = state.run?.snapshots ?? [];
  $("#course").hidden = ["opened", "edited"].includes(shots[0]?.source); // which took no time
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  if (!shots.length) {
    svg.replaceChildren(
      s("text", { x: WIDTH / 2, y: HEIGHT / 2, class: "empty" }, "Solve to see the cost fall"),
    );
    return;
  }
  const costs = shots.map((shot) => shot.cost);
  const margin = (costs[0] - costs.at(-1)) * 0.12 || costs[0] * 0.01 || 1;
  const [low, high] = [Math.min(...costs) - margin, Math.max(...costs) + margin];
  const end = Math.max(state.seconds, shots.at(-1).seconds, 0.1);
  const x = (seconds) => LEFT + (seconds / end) * (WIDTH - LEFT - RIGHT);
  const y = (cost) => HEIGHT - BOTTOM - ((cost - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const steps = shots.map((shot, i) => `${i ? "H" : "M"}${x(shot.seconds)}${i ? "V" : " "}${y(shot.cost)}`);
  svg.replaceChildren(
    s(
      "g",
      { class: "axis" },
      ...ticks(low, high, 4).flatMap((cost) => [
        s("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(cost), y2: y(cost) }),
        s("text", { x: LEFT - 6, y: y(cost) + 3.5, "text-anchor": "end" }, price(cost)),
      ]),
      ...ticks(0, end, 5).map((t) =>
        s("text", { x: x(t), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, `${show(t, 3)} s`),
      ),
    ),
    s("path", { class: "stairs", d: `${steps.join("")}H${x(end)}` }),
    ...shots.map((shot) =>
      s(
        "g",
        {
          class: `shot mark-${shot.source}${shot === state.shown ? " on" : ""}`,
          onclick: () => shot.routes && change({ shown: shot }),
        },
        s("circle", { class: "hit", cx: x(shot.seconds), cy: y(shot.cost), r: 9 }),
        s("path", { d: SHAPES[shot.source](x(shot.seconds), y(shot.cost)) }),
        s("title", {}, `${SOURCES[shot.source]}: ${told(shot.cost)} after ${show(shot.seconds, 3)} s`),
      ),
    ),
  );
  const best = Math.min(...costs);
  svg.setAttribute(
    "aria-label",
    `Cost against time: from ${told(costs[0])} to ${told(best)} in ${show(end, 3)} seconds`,
  );
}

subscribe((keys) => {
  if (["run", "shown", "seconds"].some((key) => keys.has(key))) draw();
});
