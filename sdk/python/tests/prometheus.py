"""The adapter for Prometheus, with the real library. Few interpreters have it, so tools/test.py runs this once, with the system's."""

import os
import re
import unittest.mock
from typing import Any, Dict, List, Tuple

try:
    import prometheus_client
    from prometheus_client.parser import text_string_to_metric_families  # pyright: ignore[reportUnknownVariableType]
except ImportError as error:
    raise ImportError(
        "prometheus_client is missing: make deps-python installs it, on Debian from python3-prometheus-client"
    ) from error

import lubdub
from lubdub.task import Task
from lubdub.prometheus import PrometheusMetrics

from .helpers import HERE
from .workers import WorkerCase

KINDS = {
    "attempts": "counter",
    "retries": "counter",
    "attempt_duration_seconds": "histogram",
    "queue_wait_seconds": "histogram",
    "first_heartbeat_seconds": "histogram",
    "running_tasks": "gauge",
    "claims": "counter",
    "claimed_tasks": "counter",
    "heartbeats": "counter",
    "heartbeat_duration_seconds": "histogram",
    "refusals": "counter",
    "lease_left_ratio": "histogram",
}
TIMES = "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1.0 2.5 5.0 10.0 30.0 60.0 300.0 1800.0 7200.0 +Inf"
TENTHS = "0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 +Inf"


class Prometheus(WorkerCase):
    def read(self, registry: Any) -> Dict[str, float]:
        """The samples of the exposition text, by name and labels."""
        self.kinds: Dict[str, Tuple[str, str]] = {}
        found: Dict[str, float] = {}
        for family in text_string_to_metric_families(prometheus_client.generate_latest(registry).decode()):
            self.kinds[family.name] = family.type, family.documentation
            for one in family.samples:
                labels = ",".join(f"{name}={value}" for name, value in sorted(one.labels.items()))
                found[f"{one.name}{{{labels}}}" if labels else one.name] = one.value
        return found

    def buckets(self, samples: Dict[str, float], name: str) -> str:
        return " ".join(re.findall(rf"lubdub_worker_{name}_bucket{{.*?le=(.*?)[,}}]", "\n".join(samples)))

    def test_what_a_worker_does_is_in_the_exposition_text(self) -> None:
        def handler(task: Task) -> None:
            if task.payload == "fails":
                raise ValueError("no")
            if task.attempt == 1:
                raise lubdub.Snooze(100)
            task.wait(20)

        registry = prometheus_client.CollectorRegistry()
        worker = lubdub.Worker("default", client=self.server.client(metrics=PrometheusMetrics(registry)), default=print)
        worker.handle("t", handler)
        self.server.intercept = (
            lambda r: (409, {"error": "conflict"}) if r.path.endswith("/refused/completed") else None
        )
        self.server.enqueue("t", "works", taskId="works")
        for task in ("failed", "refused"):
            self.server.enqueue("t", "fails", taskId=task, retry={"maxAttempts": 1})
        self.server.enqueue(None)
        self.server.advance(3)
        self.run_worker(worker)
        self.server.until("the second attempt runs", lambda: self.server.task("works").attempt == 2)
        self.assertEqual(self.read(registry)["lubdub_worker_running_tasks"], 1)
        self.server.until("it ends", lambda: not worker.active_count)
        self.assertEqual(self.read(registry)["lubdub_worker_running_tasks"], 0)
        found = self.read(registry)
        kinds = {name: kind for name, (kind, _) in self.kinds.items() if not name.endswith("_created")}
        self.assertEqual(kinds, {f"lubdub_worker_{name}": kind for name, kind in KINDS.items()})
        for name, (_, text) in self.kinds.items():
            self.assertRegex(text, r"^[A-Z].*\.$", name)
        expected = {
            "attempts_total{outcome=SNOOZED,type=t}": 1,
            "attempts_total{outcome=SUCCEEDED,type=t}": 1,
            "attempts_total{outcome=FAILED,type=t}": 1,
            "attempts_total{outcome=LOST,type=t}": 1,
            "attempts_total{outcome=SUCCEEDED,type=}": 1,
            "retries_total{type=t}": 1,
            "attempt_duration_seconds_count{outcome=SUCCEEDED,type=t}": 1,
            "attempt_duration_seconds_bucket{le=10.0,outcome=SUCCEEDED,type=t}": 0,
            "attempt_duration_seconds_bucket{le=30.0,outcome=SUCCEEDED,type=t}": 1,
            "queue_wait_seconds_count{type=t}": 4,
            "queue_wait_seconds_bucket{le=2.5,type=t}": 1,
            "queue_wait_seconds_bucket{le=5.0,type=t}": 4,
            "queue_wait_seconds_sum{type=}": 3,
            "first_heartbeat_seconds_count{type=t}": 1,
            "first_heartbeat_seconds_bucket{le=10.0,type=t}": 1,
            "claimed_tasks_total": 5,
            "refusals_total{code=conflict}": 1,
        }
        self.assertEqual({name: found.get(f"lubdub_worker_{name}") for name in expected}, expected)
        beats = len([beat for beat in self.beats() if beat.status == 200])
        self.assertEqual(found["lubdub_worker_heartbeats_total{result=ok}"], beats)
        self.assertEqual(found["lubdub_worker_heartbeat_duration_seconds_count"], beats)
        self.assertGreaterEqual(found["lubdub_worker_claims_total{result=ok}"], 2)
        self.assertGreaterEqual(found["lubdub_worker_lease_left_ratio_count"], 1)
        self.assertEqual(self.buckets(found, "heartbeat_duration_seconds"), TIMES)
        for name in ("queue_wait_seconds", "first_heartbeat_seconds"):
            self.assertEqual(self.buckets({n: 0 for n in found if "type=t" in n}, name), TIMES)
        self.assertEqual(self.buckets(found, "lease_left_ratio"), TENTHS)

    def test_the_example_of_the_readme(self) -> None:
        with open(os.path.join(os.path.dirname(HERE), "README.md"), encoding="utf-8") as file:
            (block,) = [one for one in re.findall(r"```python\n(.*?)```", file.read(), re.S) if "prometheus" in one]
        names: Dict[str, Any] = {"lubdub": lubdub}
        with unittest.mock.patch.object(lubdub, "Client", self.server.client):
            exec(compile(block, "README.md", "exec"), names)
        worker, client = names["worker"], names["client"]
        made: List[str] = []
        traces = [f"00-{number:032x}-00f067aa0ba902b7-01" for number in (1, 2)]

        def thread(task: Task) -> None:
            made.append(client.enqueue("other", "x")["taskId"])

        async def coroutine(task: Task) -> None:
            thread(task)

        for type, handler, trace in zip(("t", "a"), (thread, coroutine), traces):
            worker.handle(type, handler)
            self.server.enqueue(type, queue="mail", traceparent=trace)
        untraced = client.enqueue("other", "x")["taskId"]
        self.run_worker(worker)
        self.server.until("both have created a task", lambda: len(made) == 2)
        found = [self.server.task(task).fields.get("traceparent") for task in (*made, untraced)]
        self.assertEqual((set(found[:2]), found[2]), (set(traces), None))
        self.server.until("they end", lambda: not worker.active_count)
        self.assertEqual(self.read(prometheus_client.REGISTRY)["lubdub_worker_claimed_tasks_total"], 2)
