"""Figures for Prometheus: counters that only grow, and gauges asked for when read."""

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST  # of what `text` returns

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """What one service counts; there may be several in a process, as in tests."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests answered, by status.", "status")
        self.jobs = self._counter("jobs", "Jobs ended, by how.", "status")
        self.refused = self._counter("jobs_refused", "Jobs refused because the queue was full.")
        self.waited = self._counter("job_wait_seconds", "Time that jobs waited in the queue.")
        self.ran = self._counter("job_run_seconds", "Time that jobs ran.")
        self.batches = self._counter("batches", "Batches decoded by the policy.")
        self.batch_problems = self._counter("batch_problems", "Problems in those batches.")
        self.batch_seconds = self._counter("batch_seconds", "Time spent on those batches.")

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"chainroute_{name}", meaning, labels, registry=self._registry)

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Adds a gauge."""
        Gauge(f"chainroute_{name}", meaning, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        return generate_latest(self._registry)
