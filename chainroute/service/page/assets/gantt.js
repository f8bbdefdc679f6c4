/** The schedule: a lane per route with travel, waiting, service and the windows that bind. The chosen route
 * opens into a lane per stop, where each window has a line of its own. */

import { $, clipped, h, s, ticks } from "./dom.js";
import { locations, windowsOf } from "./problem.js";
import { colour } from "./solution.js";
import { change, state, subscribe } from "./state.js";
import { minute, moments, span } from "./units.js";

const root = $("#schedule");
const [LANE, ROW, LEFT, RIGHT] = [34, 20, 92, 16];

function draw() {
  if (root.hidden) return;
  const { model, shown } = state;
  const routes = shown?.routes.filter((route) => route.stops.length) ?? [];
  if (!routes.length) {
    root.replaceChildren(h("p", { class: "empty" }, "The schedule of the routes appears here."));
    return;
  }
  const width = Math.max(300, root.clientWidth - 2);
  const places = new Map(locations(model).map((location) => [location.id, location]));
  const begin = Math.min(...routes.map((route) => route.start));
  const end = Math.max(
    ...routes.map((route) => Math.max(route.end, ...route.stops.map((stop) => stop.departure))),
  );
  const within = (time) => Math.min(Math.max(time, begin), end);
  const x = (time) => LEFT + ((within(time) - begin) / (end - begin || 1)) * (width - LEFT - RIGHT);
  const parts = Math.max(2, (width - LEFT) / 80);
  const marks = moments(model, begin, end, parts) ?? ticks(begin, end, parts);
  const windows = (id) => windowsOf(model, places.get(id) ?? {});
  const binds = ([opening, closing]) => opening > begin || (closing ?? Infinity) < end;

  let top = 0;
  const lanes = [];
  for (const route of routes) {
    lanes.push(lane(route, top, x, width, places, (id) => windows(id).filter(binds)));
    top += LANE;
    if (route.number !== state.pinned) continue;
    for (const stop of route.stops) {
      lanes.push(stopLane(route, stop, top, x, places, windows(stop.id)));
      top += ROW;
    }
    top += 6;
  }
  root.replaceChildren(
    h(
      "div",
      { class: "gantt-head" },
      legend("Travel", "travel"),
      legend("Service", "service"),
      legend("Waiting", "waiting"),
      ...(model.windows ? [legend("Window", "window")] : []),
    ),
    s(
      "svg",
      { class: "gantt-axis", viewBox: `0 0 ${width} 20`, width, height: 20, "aria-hidden": "true" },
      ...marks.map((time) => s("text", { x: x(time), y: 14, "text-anchor": "middle" }, minute(model, time))),
    ),
    s(
      "svg",
      {
        class: "gantt",
        viewBox: `0 0 ${width} ${top}`,
        width,
        height: top,
        role: "img",
        "aria-label": "Schedule of the routes",
      },
      s(
        "defs",
        {},
        s(
          "pattern",
          {
            id: "hatch",
            width: 5,
            height: 5,
            patternUnits: "userSpaceOnUse",
            patternTransform: "rotate(45)",
          },
          s("rect", { width: 2, height: 5 }),
        ),
      ),
      ...marks.map((time) => s("line", { class: "tick", x1: x(time), x2: x(time), y1: 0, y2: top })),
      ...lanes,
    ),
  );
}

const legend = (name, kind) => h("span", { class: `key ${kind}` }, name);

function lane(route, top, x, width, places, windows) {
  const active = route.number === (state.hover ?? state.pinned);
  const group = s(
    "g",
    {
      class: active ? "lane on" : "lane",
      "data-lane": route.number,
      onpointerenter: () => change({ hover: route.number }),
      onpointerleave: () => change({ hover: null }),
      onclick: () => change({ pinned: state.pinned === route.number ? null : route.number, selected: null }),
    },
    s("rect", { class: "bed", x: 0, y: top, width, height: LANE }),
    s("title", {}, "Click to see each stop"),
    s("text", { x: 10, y: top + 20 }, `Route ${route.number}`),
    bar("travel", x(route.start), x(route.end), top + 11, 4),
    ...route.stops.flatMap((stop, i) =>
      stopMarks(stop, x, top + 7, 12, places).concat(
        windowMarks(windows(stop.id), x, top + 22 + 4 * (i % 3), 2.5),
      ),
    ),
  );
  group.style.color = colour(route.slot);
  return group;
}

function stopLane(route, stop, top, x, places, windows) {
  const group = s(
    "g",
    { class: "stop-lane" },
    s("text", { x: 22, y: top + 14 }, clipped(places.get(stop.id)?.name ?? "", LONGEST)),
    ...windowMarks(windows, x, top + 4, 12),
    ...stopMarks(stop, x, top + 6, 8, places),
  );
  group.style.color = colour(route.slot);
  return group;
}

const LONGEST = 11; // characters of a name beside its line

const bar = (kind, from, to, y, height) =>
  s("rect", { class: kind, x: from, y, width: Math.max(to - from, 1), height, rx: Math.min(2, height / 2) });

const windowMarks = (windows, x, y, height) =>
  windows.map(([opening, closing]) => bar("window", x(opening), x(closing ?? Infinity), y, height));

/** Waiting and service at one stop, with its times as a tip. */
function stopMarks(stop, x, y, height, places) {
  const waits = stop.start - stop.arrival > 1e-9;
  const parts = [
    `arrives ${minute(state.model, stop.arrival)}`,
    waits ? `waits ${span(state.model, stop.start - stop.arrival)}` : "",
    `leaves ${minute(state.model, stop.departure)}`,
  ];
  return [
    s(
      "g",
      { class: "stop" },
      ...(waits ? [bar("waiting", x(stop.arrival), x(stop.start), y, height)] : []),
      bar("service", x(stop.start), Math.max(x(stop.departure), x(stop.start) + 3), y, height),
      s("title", {}, `${places.get(stop.id)?.name}: ${parts.filter(Boolean).join(", ")}`),
    ),
  ];
}

/** Hovering marks the lane without drawing everything again. */
function mark() {
  for (const group of root.querySelectorAll(".lane")) {
    group.classList.toggle("on", Number(group.dataset.lane) === (state.hover ?? state.pinned));
  }
}

subscribe((keys) => {
  if (keys.has("shown") || keys.has("pinned") || keys.has("model")) draw();
  else if (keys.has("hover")) mark();
});

new ResizeObserver(() => state.model && draw()).observe(root);
