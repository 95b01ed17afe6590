from __future__ import annotations

from time import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from harness.domain import Evaluation
from harness.service.queue import Entry, State

LONG_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
SHORT_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0, 60.0)
METHODS = ("GET", "POST", "DELETE")


class Metrics:
    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("harness_requests", "HTTP requests.", ("method", "route", "status"), registry=registry)
        self._request_s = Histogram(
            "harness_request_seconds",
            "Time to answer, waiting included.",
            ("route",),
            buckets=SHORT_S,
            registry=registry,
        )
        self._tasks = Gauge("harness_tasks", "Tasks in the queue's folder.", ("state",), registry=registry)
        self._devices = Gauge("harness_devices", "Devices that evaluate.", registry=registry)
        self._wait_s = Histogram(
            "harness_queue_wait_seconds", "From acceptance to start.", buckets=LONG_S, registry=registry
        )
        self._build_s = Histogram(
            "harness_build_seconds", "Builds, without cached ones.", buckets=LONG_S, registry=registry
        )
        self._evaluation_s = Histogram("harness_evaluation_seconds", "Evaluations.", buckets=LONG_S, registry=registry)
        self._verdicts = Counter("harness_verdicts", "Verdicts.", ("outcome", "language", "device"), registry=registry)
        self._failures = Counter(
            "harness_failures", "Tasks without a verdict: faults of harness or machine.", registry=registry
        )

    def requested(self, method: str, route: str, status: int, seconds: float) -> None:
        named = method if method in METHODS else "other"  # clients can invent them
        self._requests.labels(named, route, str(status)).inc()
        self._request_s.labels(route).observe(seconds)

    def waited(self, entry: Entry) -> None:
        self._wait_s.observe(max(time() - entry.accepted_at, 0.0))

    def failed(self) -> None:
        self._failures.inc()

    def evaluated(self, evaluation: Evaluation) -> None:
        self._evaluation_s.observe(evaluation.duration_s)
        if evaluation.build is not None and not evaluation.build.cached:
            self._build_s.observe(evaluation.build.duration_s)
        if evaluation.outcome.counts_against_model:
            subject = evaluation.subject
            self._verdicts.labels(evaluation.outcome.value, subject.language, subject.device).inc()
        else:
            self._failures.inc()

    def render(self, counts: dict[State, int], devices: int) -> bytes:
        for state, count in counts.items():
            self._tasks.labels(state).set(count)
        self._devices.set(devices)
        return generate_latest(self._registry)
