"""How many requests the service answers, with and without micro-batching.

A service on loopback, in a process of its own, is sent requests, up to `--concurrency` open at a time.
Each asks for the policy's routes of a problem of its own and waits for them; every answer is judged.

python -m benchmarks.service                          # N = 50: 200 requests, 32 at a time, about a minute
python -m benchmarks.service --requests 64 --quick    # one of the efforts
python -m benchmarks.service --burst 40               # short jobs at once: who has the policy's routes
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from chainroute import Problem, Solution, check, variant
from chainroute.generate import generate
from chainroute.problem.variants import SEEN
from chainroute.service.documents import problem as document
from chainroute.service.settings import Settings

START = """
from chainroute.service.server import serve
from chainroute.service.settings import Settings
serve(Settings(batch={batch}), "127.0.0.1", 0, lambda address: print(address, flush=True))
"""
EFFORTS = {
    "one start": {"polish": False, "starts": 1, "augmentations": 1},
    "64 starts, recombined (default)": {"polish": False},
}
TIME_LIMIT = 5.0  # seconds, which no request needs
BURST_SECONDS = 0.5  # of each of the short jobs that come at once
READY = 120.0  # seconds that the service has to load the policy


def start(batch: int) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", START.format(batch=batch)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    end = time.monotonic() + READY
    while not httpx.get(f"{address}/v1/health").json()["ready"]:
        if time.monotonic() > end:
            raise SystemExit("the service does not get ready")
        time.sleep(0.1)
    return process, address


async def ask(
    address: str,
    problems: Sequence[Problem],
    effort: dict[str, Any],
    concurrency: int,
    time_limit: float = TIME_LIMIT,
) -> tuple[float, list[float], list[dict[str, Any]]]:
    """Seconds for all, and of each request; and the jobs."""
    turns = asyncio.Semaphore(concurrency)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, timeout=300, limits=limits) as client:

        async def one(problem: Problem) -> tuple[float, dict[str, Any]]:
            body = {"problem": document(problem), "time_limit": time_limit, "effort": effort}
            async with turns:
                begin = time.perf_counter()
                answer = await client.post("/v1/solve?wait=true", json=body)
                seconds = time.perf_counter() - begin
            job = answer.json()
            judge(problem, job)
            return seconds, job

        begin = time.perf_counter()
        done = await asyncio.gather(*map(one, problems))
        took = time.perf_counter() - begin
        return took, sorted(seconds for seconds, _ in done), [job for _, job in done]


def judge(problem: Problem, job: dict[str, Any]) -> None:
    if job.get("status") != "done":
        raise SystemExit(f"{problem.name}: {job}")
    number = {name: i for i, name in enumerate(problem.names)}
    routes = [(number[r["depot"]], [number[c] for c in r["customers"]]) for r in job["solution"]["routes"]]
    if not check(problem, Solution.of(problem, routes)).feasible:
        raise SystemExit(f"{problem.name}: the answer is not feasible")


def batches(address: str) -> tuple[float, float]:
    """Their number, and the problems in them, so far."""
    lines = dict(line.rsplit(" ", 1) for line in httpx.get(f"{address}/metrics").text.splitlines())
    return tuple(float(lines.get(f"chainroute_{k}_total", 0)) for k in ("batches", "batch_problems"))  # type: ignore[return-value]


def processor_seconds(pid: int) -> float:
    """What a process and its children have used so far; by the clock, it matters who else is at work."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            facts = (place / "stat").read_text().rpartition(")")[2].split()
            if pid in (int(place.name), int(facts[1])):
                ticks += int(facts[11]) + int(facts[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def burst(problems: Sequence[Problem]) -> None:
    """Short jobs of the default effort, all at once."""
    process, address = start(Settings().batch)
    try:
        before = batches(address)
        seconds, _, jobs = asyncio.run(ask(address, problems, {}, len(problems), BURST_SECONDS))
        number, _ = (b - a for a, b in zip(before, batches(address), strict=True))
        routes = sum(job["first"] is not None for job in jobs)
        told = sum(job["without_policy"] is not None for job in jobs)
        print(
            f"{len(jobs)} jobs of {BURST_SECONDS:g} s at once: {number:.0f} batches, {seconds:.1f} s for all;"
        )
        print(f"{routes} have the policy's routes, {told} say why they have none")
    finally:
        process.terminate()
        process.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--customers", type=int, default=50)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--quick", action="store_true", help="the first effort only")
    parser.add_argument("--burst", type=int, help="so many short jobs at once, and nothing else")
    args = parser.parse_args()
    wanted = args.burst or args.requests
    each = -(-wanted // len(SEEN))
    problems = [p for v in SEEN for p in generate(variant(v.name), args.customers, each, seed=1)]
    problems = problems[:: max(1, len(problems) // wanted)][:wanted]
    if args.burst:
        burst(problems)
        return
    efforts = list(EFFORTS.items())[: 1 if args.quick else None]
    cores = len(os.sched_getaffinity(0))
    print(f"N = {args.customers}, {len(problems)} requests, {args.concurrency} at a time, {cores} cores\n")
    print("| policy | micro-batching | requests/s | p50 | p95 | problems per batch | processor per request |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for batch in (1, Settings().batch):
        process, address = start(batch)
        try:
            for name, effort in efforts:
                asyncio.run(ask(address, problems[:8], effort, 8))  # so that its pace is known
                before, used = batches(address), processor_seconds(process.pid)
                seconds, each_took, _ = asyncio.run(ask(address, problems, effort, args.concurrency))
                number, inside = (b - a for a, b in zip(before, batches(address), strict=True))
                used = (processor_seconds(process.pid) - used) / len(problems)
                p50, p95 = (each_took[int(q * (len(each_took) - 1))] for q in (0.5, 0.95))
                how, rate = "with" if batch > 1 else "without", len(problems) / seconds
                print(
                    f"| {name} | {how} | {rate:.1f} | {p50:.1f} s | {p95:.1f} s | {inside / number:.1f} "
                    f"| {used:.2f} s |",
                    flush=True,
                )
        finally:
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    main()
