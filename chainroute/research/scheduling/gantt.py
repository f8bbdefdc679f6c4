"""A schedule as a picture: a lane for each machine, a bar for each operation, a colour for each job."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from chainroute.research.scheduling.shop import FlowShop, Schedule, check
from chainroute.runtime.extras import loading

BRIGHTNESS = (0.3, 0.59, 0.11)  # of red, green and blue


def draw(shop: FlowShop, schedule: Schedule, path: Path, title: str = "") -> None:
    with loading("pictures", "plot"):
        from matplotlib import colormaps
        from matplotlib.figure import Figure
    lanes = shop.stages * shop.machines
    figure = Figure(figsize=(9, 0.35 * lanes + 1.2), layout="constrained")
    axes = figure.add_subplot()
    colours = colormaps["turbo"]
    for s in range(shop.stages):
        for j in range(shop.jobs):
            m = int(schedule.machine[s, j])
            start, spent = int(schedule.start[s, j]), int(shop.times[s, m, j])
            lane = s * shop.machines + m
            colour = colours((j + 0.5) / shop.jobs)
            axes.barh(lane, spent, left=start, height=0.8, color=colour, edgecolor="white", linewidth=0.5)
            ink = "white" if np.dot(colour[:3], BRIGHTNESS) < 0.4 else "black"
            axes.text(start + spent / 2, lane, str(j), ha="center", va="center", fontsize=7, color=ink)
    axes.set_yticks(
        range(lanes), [f"stage {i // shop.machines + 1}, {i % shop.machines + 1}" for i in range(lanes)]
    )
    axes.invert_yaxis()
    for s in range(1, shop.stages):
        axes.axhline(s * shop.machines - 0.5, color="grey", linewidth=0.8)
    axes.set_xlabel("time")
    axes.set_title(title or f"makespan {check(shop, schedule).makespan}")
    figure.savefig(path)
