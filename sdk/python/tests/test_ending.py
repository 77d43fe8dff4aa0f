"""A completion that an outage delays: the attempt must not be lost in the meantime."""

from typing import Any, Dict, List

from lubdub.testing import Request

from .workers import WorkerCase


class Ending(WorkerCase):
    def test_at_most_one_inventory_omits_it(self) -> None:
        refused: List[Request] = []

        def intercept(request: Request) -> Any:
            if request.path.endswith("/ends/completed") and len(refused) < 3:
                refused.append(request)
                return 503, {"error": "store_unavailable"}, {"Retry-After": "60"}
            return None

        self.server.intercept = intercept
        own: Dict[str, Any] = {"heartbeatIntervalMs": 10_000, "heartbeatTimeoutMs": 45_000}
        none: Dict[str, Any] = {}
        for name, fields in (("ends", none), ("own", own), ("workers", none)):
            self.server.enqueue("t", name, taskId=name, **fields)

        def handler(task: Any) -> None:
            task.progress(5)
            task.wait(15 if task.payload == "ends" else 400)

        self.start(handler, client={"lease": "strict"})
        self.server.until("it ends", lambda: refused)
        self.server.until("it is completed", lambda: self.server.task("ends").over)
        self.server.advance(60)
        times: Dict[str, List[float]] = {"left out": [], "without": [], "own": [], "both": []}
        for request in self.server.requests:
            if request.path.endswith("/heartbeats"):
                self.assertEqual([i["taskId"] for i in request.json()["heartbeats"]], ["own"])
                times["own"].append(request.at)
            elif (
                request.path.startswith("/v1/workers/")
                and request.path.endswith("/heartbeat")
                and request.at > refused[0].at
            ):
                body = request.json()
                self.assertIn(sorted(i["taskId"] for i in body.get("tasks", [])), ([], ["own", "workers"]))
                over = request.at > refused[0].at + 180
                times["without" if "tasks" not in body else "both" if over else "left out"].append(request.at)
        self.assertEqual(len(times["left out"]), 1)
        self.assertGreater(len(times["without"]), 10)
        self.assertEqual(len(times["own"]), len(times["without"]))
        self.assertGreater(len(times["both"]), 3, "it lists again what it holds")
        self.assertEqual(
            {n: self.server.task(n).state for n in ("ends", "own", "workers")},
            {"ends": "SUCCEEDED", "own": "RUNNING", "workers": "RUNNING"},
        )
        self.assertEqual(self.server.task("own").progress, {"progressPct": 5})

    def test_the_rejection_of_its_own_heartbeat_is_applied(self) -> None:
        ends: List[Any] = []
        self.server.intercept = lambda r: (
            (503, {"error": "store_unavailable"}, {"Retry-After": "60"}) if r.path.endswith("/ends/completed") else None
        )
        self.server.enqueue("t", taskId="ends")
        self.server.enqueue("t", taskId="own", heartbeatIntervalMs=10_000, heartbeatTimeoutMs=45_000)

        def handler(task: Any) -> None:
            task.on_end(ends.append)
            task.wait(15 if task.task_id == "ends" else 400)

        self.start(handler)
        self.server.until("beats go without inventory", lambda: self.server.seen("/v1/heartbeats"))
        self.server.supersede("own")
        self.server.until(
            "the handlers are notified", lambda: [type(end).__name__ for end in ends] == ["Superseded"], 30
        )
        before = len(self.server.seen("/v1/heartbeats"))
        self.server.advance(40)
        self.assertEqual(len(self.server.seen("/v1/heartbeats")), before)

    def test_a_new_registration_does_not_hold_ending_attempts(self) -> None:
        self.server.intercept = lambda r: (
            (503, {"error": "store_unavailable"}, {"Retry-After": "60"}) if r.path.endswith("/ends/completed") else None
        )
        self.server.enqueue("t", taskId="ends")
        self.start(lambda task: task.wait(15))
        self.server.until("a beat goes without inventory", lambda: [r for r in self.beats() if "tasks" not in r.json()])
        self.server.forget()
        self.server.until("it has come back", lambda: self.server.store.workers)
        self.server.until("it beats", lambda: self.beats())
        self.assertEqual(self.beats()[0].json()["tasks"], [])
