"""Figures as Prometheus text, without a library: counters that only grow, and gauges asked for when read."""

import threading
from collections import Counter
from collections.abc import Mapping

HELP = {
    "chainroute_requests_total": "Requests answered, by status.",
    "chainroute_jobs_total": "Jobs ended, by how.",
    "chainroute_jobs_refused_total": "Jobs refused because the queue was full.",
    "chainroute_job_wait_seconds_total": "Time that jobs waited in the queue.",
    "chainroute_job_run_seconds_total": "Time that jobs ran.",
    "chainroute_batches_total": "Batches decoded by the policy.",
    "chainroute_batch_problems_total": "Problems in those batches.",
    "chainroute_batch_seconds_total": "Time spent on those batches.",
    "chainroute_jobs_queued": "Jobs that wait now.",
    "chainroute_jobs_running": "Jobs that run now.",
    "chainroute_jobs_kept": "Jobs that can be asked for.",
}


class Metrics:
    def __init__(self) -> None:
        self._counters: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        key = name + _braces(labels)
        with self._lock:
            self._counters[key] += amount  # type: ignore[assignment]  # seconds are fractions

    def text(self, gauges: Mapping[str, float]) -> str:
        with self._lock:
            values = {**self._counters, **gauges}
        lines = []
        for name, meaning in HELP.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [f"{key} {value:g}" for key, value in sorted(values.items()) if _name(key) == name]
        return "\n".join(lines) + "\n"


def _braces(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _name(key: str) -> str:
    return key.partition("{")[0]
