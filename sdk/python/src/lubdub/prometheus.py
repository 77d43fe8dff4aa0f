"""Metrics for Prometheus. It needs prometheus_client: pip install lubdub[prometheus]."""

from __future__ import annotations

from typing import Optional, Sequence

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from .metrics import AttemptEnd, Metrics

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)


class PrometheusMetrics(Metrics):
    """Counts what the workers of a client do: lubdub.Client(metrics=PrometheusMetrics()). Create one for a registry. Several workers of a
    process that share it replace each other's lubdub_worker_running_tasks.

    registry: where the metrics are registered; None: the default registry of prometheus_client.
    """

    def __init__(self, registry: Optional[CollectorRegistry] = None) -> None:
        where = REGISTRY if registry is None else registry

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"lubdub_worker_{name}", text, labels, registry=where)

        def histogram(name: str, text: str, *labels: str, buckets: Sequence[float] = SECONDS) -> Histogram:
            return Histogram(f"lubdub_worker_{name}", text, labels, registry=where, buckets=buckets)

        self._attempts = counter("attempts_total", "Attempts that have ended, by their outcome.", "type", "outcome")
        self._retries = counter(
            "retries_total", "Attempts that have ended and were not the first of their task.", "type"
        )
        self._durations = histogram(
            "attempt_duration_seconds", "Time from the start of a handler until it returned.", "type", "outcome"
        )
        self._waits = histogram("queue_wait_seconds", "Time that a task was ready before it was claimed.", "type")
        self._firsts = histogram(
            "first_heartbeat_seconds",
            "Time from the start of a handler until its first heartbeat was accepted.",
            "type",
        )
        self._running = Gauge("lubdub_worker_running_tasks", "Tasks that are running.", registry=where)
        self._claims = counter("claims_total", "Claims, by their result: ok, refused or unanswered.", "result")
        self._claimed = counter("claimed_tasks_total", "Tasks that claims returned.")
        self._beats = counter(
            "heartbeats_total", "Heartbeat requests, by their result: ok, refused or unanswered.", "result"
        )
        self._beat_durations = histogram("heartbeat_duration_seconds", "Time that a heartbeat request took.")
        self._refusals = counter("refusals_total", "Refused heartbeats and completions, by their code.", "code")
        self._left = histogram(
            "lease_left_ratio",
            "Share of the lease that was left when a heartbeat was accepted.",
            buckets=[tenths / 10 for tenths in range(1, 11)],
        )

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        self._beats.labels(result).inc()
        self._beat_durations.observe(seconds)

    def refused(self, code: str) -> None:
        self._refusals.labels(code).inc()

    def lease_left(self, ratio: float) -> None:
        self._left.observe(ratio)

    def claimed(self, result: str, tasks: int) -> None:
        self._claims.labels(result).inc()
        self._claimed.inc(tasks)

    def running(self, count: int) -> None:
        self._running.set(count)

    def ended(self, attempt: AttemptEnd) -> None:
        self._attempts.labels(attempt.type, attempt.outcome).inc()
        self._durations.labels(attempt.type, attempt.outcome).observe(attempt.duration)
        if attempt.attempt > 1:
            self._retries.labels(attempt.type).inc()
        if attempt.queue_wait is not None:
            self._waits.labels(attempt.type).observe(attempt.queue_wait)
        if attempt.first_heartbeat is not None:
            self._firsts.labels(attempt.type).observe(attempt.first_heartbeat)
