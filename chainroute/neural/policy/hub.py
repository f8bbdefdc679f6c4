"""A policy as a folder that the tools of model hubs understand: README.md, config.json, model.safetensors.

The README is the filled card of `config.json` in the hub's words. Nothing here uses the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chainroute.errors import fail
from chainroute.generate import paper
from chainroute.neural.policy.card import SUITES
from chainroute.neural.policy.store import IN_FOLDER, load_policy, policy_files, read_card
from chainroute.runtime.files import PathLike, identity, load, save
from chainroute.runtime.files import folder as make_folder

README = "README.md"
REFERENCE = "PyVRP, 10 s a problem with 50 customers and 20 s with 100"
LAWS = {
    "paper": (
        "The paper's law: depots and customers uniform in the unit square, whole demands of "
        f"{paper.DEMAND[0]} to {paper.DEMAND[1] - 1} over a capacity that grows with the customers' number, "
        f"a backhaul with chance {paper.BACKHAUL_SHARE}, service of {paper.SERVICE[0]} to {paper.SERVICE[1]} "
        f"and windows {paper.WINDOW_SPAN[0]} to {paper.WINDOW_SPAN[1]} long in a day of {paper.HORIZON}, "
        f"route limits of up to {paper.MAX_LIMIT}."
    ),
    "wide": (
        "The law of `chainroute generate --law wide`: places, demands, windows, limits, roads and fleets of "
        "many kinds."
    ),
}


def export(which: PathLike, folder: PathLike, *, trust_code: bool = False) -> list[Path]:
    """Writes the policy at a path, or a shipped one by its name, as a folder; returns its files.

    The policy is loaded first, so that nothing damaged is handed on; its weights are copied bit for bit.
    """
    load_policy(which, trust_code=trust_code)
    sources = policy_files(which)
    targets = [Path(folder) / name for name in (*IN_FOLDER, README)]
    if {identity(file) for file in sources} & {identity(file) for file in targets[:2]}:
        raise fail("bad-option", "the policy lies there already; name another folder.", "folder")
    card, name = read_card(which), Path(folder).resolve().name
    make_folder(folder)
    for target, data in zip(targets, (*map(load, sources), readme(card, name).encode()), strict=True):
        save(target, data)
    return targets


def readme(card: Mapping[str, Any], name: str) -> str:
    """The README.md of a policy: what the hub's tools read, then what people do."""
    return "\n".join(["---", *_front_matter(card, name), "---", "", *_text(card, name)])


def _front_matter(card: Mapping[str, Any], name: str) -> Iterator[str]:
    """YAML, whose values are JSON, which is YAML as well."""
    if "licence" in card:
        yield f"license: {str(card['licence']).lower()}"
    yield "library_name: chainroute"
    yield "tags:"
    tags = ("vehicle-routing", "combinatorial-optimization", "reinforcement-learning", *_variants(card))
    yield from (f"- {tag}" for tag in tags)
    if card.get("results"):
        yield "model-index:"
        yield f"- name: {json.dumps(name)}"
        yield "  results:"
        for results in card["results"]:
            title = _title(results)
            metrics = [
                {"type": "gap_percent", "name": f"{task}: gap (%)", "value": gap}
                for task, gap in results["gap_percent"].items()
            ]
            if "mean_gap_percent" in results:
                mean = results["mean_gap_percent"]
                metrics.insert(0, {"type": "mean_gap_percent", "name": "Mean gap (%)", "value": mean})
            yield f'  - task: {{"type": "vehicle-routing", "name": {json.dumps(title)}}}'
            yield f'    dataset: {{"type": "chainroute-{results["suite"]}", "name": {json.dumps(title)}}}'
            yield "    metrics:"
            yield from (f"    - {json.dumps(metric)}" for metric in metrics)


def _text(card: Mapping[str, Any], name: str) -> Iterator[str]:
    """A text for people: what it is, how it is used, what it has seen and reaches, and where it is weak."""
    parts = card.get("parameters")
    size = f" of {parts['total']:,} parameters ({parts['encoder']:,} of them the encoder's)" if parts else ""
    yield f"# {name}: {card.get('name', 'a policy for vehicle routing')}\n"
    yield (
        f"A network{size} "
        "that constructs routes by Chain-of-Context Learning (ICLR 2026), for use with ChainRoute.\n"
    )
    yield "```python\nfrom chainroute.decode import decode\nfrom chainroute.formats import read"
    yield "from chainroute.policy.store import load_policy\n"
    yield f'(solution,) = decode(load_policy("{name}"), [read("problem.json")])\n```\n'
    yield f"    chainroute solve problem.json --weights {name}\n"
    yield from _training(card)
    yield from _results(card)
    yield "## Limits\n"
    yield (
        "It was trained on problems like those above. On others it plans as well, and every plan is judged, "
        "but gaps grow with the distance from what it has seen: more customers, wider windows, other maps. "
        "`chainroute solve` has PyVRP beside it for that reason.\n"
    )


def _training(card: Mapping[str, Any]) -> Iterator[str]:
    yield "## Training\n"
    if "data" in card:
        yield f"- Data: {card['data']}."
    training = card.get("training") or {}
    if training and (law := str(training.get("law", "paper"))) in LAWS:
        yield f"- {LAWS[law]}"
    if "sizes" in training:
        yield f"- Sizes: {', '.join(map(str, training['sizes']))} customers."
    if "instances" in card:
        updates = card.get("updates", card.get("step"))
        yield f"- Seen: {card['instances']:,} problems" + (f" in {updates:,} updates." if updates else ".")
    if "begun_with" in card:
        begun = card["begun_with"]
        yield f"- Begun with `{begun['name']}`, which had seen {begun['instances']:,} problems."
    if {"gpu", "gpu_seconds"} <= card.keys():
        yield f"- Time: {card['gpu_seconds']:,.0f} s on one {card['gpu']}."
    if "command" in card:
        yield (
            f"- Trained in stretches, the last by `{card['command']}`: no one command makes these weights "
            "from nothing. The ledger in the project's `runs` has a row for each stretch."
        )
    yield ""


def _results(card: Mapping[str, Any]) -> Iterator[str]:
    if not card.get("results"):
        return
    yield "## Results\n"
    yield (
        f"Gaps in per cent to the reference ({REFERENCE}) over the 1,000 test problems of each variant, and "
        "to the best known costs of instances from libraries: the network alone, greedy from every customer "
        "on eight maps.\n"
    )
    for results in card["results"]:
        yield f"### {_title(results)}\n"
        yield "| problems | gap % |\n| --- | --- |"
        yield from (f"| {task} | {gap} |" for task, gap in results["gap_percent"].items())
        if "mean_gap_percent" in results:
            yield f"| mean | {results['mean_gap_percent']} |"
        yield ""


def _title(results: Mapping[str, Any]) -> str:
    """What a suite of problems is called."""
    if results["customers"] is None:
        return "Instances from libraries"
    return f"{SUITES[results['suite']]}, {results['customers']} customers"


def _variants(card: Mapping[str, Any]) -> list[str]:
    return [str(name).lower() for name in (card.get("training") or {}).get("variants", ())]
