"""A worker that an operator takes offline or drains."""

from typing import Any, List

import lubdub
from lubdub._clock import Event
from lubdub.task import Task
from lubdub.testing import Server

from .workers import WorkerCase


class Held(WorkerCase):
    def sent_since(self, moment: int) -> List[str]:
        return [f"{r.method} {r.path}" for r in self.server.requests[moment:]]

    def test_a_worker_that_is_forced_offline_stops_and_sends_nothing_more(self) -> None:
        ends: List[Any] = []
        cleaned: List[float] = []

        def handler(task: Task) -> str:
            task.on_end(ends.append)
            try:
                task.wait(1000)
            except lubdub.Lost:
                Event(self.server.clock).wait(3)
                cleaned.append(self.server.clock.now())
                if task.payload == "gives up":
                    raise
            return "done"

        for by in ("beat", "claim"):
            self.end()
            self.ended, ends[:], cleaned[:] = [], [], []
            self.server.__exit__()
            self.server = Server()
            self.addCleanup(self.server.__exit__)
            ids = [self.server.enqueue("t", payload) for payload in ("returns", "gives up")]
            self.start(handler, concurrency=2 if by == "beat" else 3)  # with no free place nothing is claimed
            self.server.until("they run", lambda ids=ids: {self.server.task(i).state for i in ids} == {"RUNNING"})
            self.server.advance(1)
            self.server.force_offline()
            self.server.until("the handlers are notified", lambda: ends)
            sent = len(self.server.requests)
            self.server.until("the worker ends", lambda: self.ended)
            self.server.advance(100)
            with self.subTest(by=by):
                self.assertEqual([type(end).__name__ for end in ends], ["Lost", "Lost"])
                self.assertEqual(len(cleaned), 2)
                self.assertEqual(self.sent_since(sent), [])
                self.assertEqual([self.server.task(i).completions for i in ids], [[], []])
                error = self.ended[0]
                assert isinstance(error, lubdub.ForcedOffline)
                self.assertIn(f"lubdub worker resume {self.server.worker().id}", str(error))

    def test_a_registration_of_one_that_is_held_ends_the_worker(self) -> None:
        self.start()
        self.server.until("it is registered", lambda: self.server.store.workers)
        held = self.server.worker().id
        self.server.force_offline()
        self.server.until("it ends", lambda: self.ended)
        sent = len(self.server.requests)
        self.start()
        self.server.until("the second one ends", lambda: len(self.ended) == 2)
        self.server.advance(100)
        self.assertEqual(self.sent_since(sent), ["POST /v1/workers"])
        error = self.ended[1]
        assert isinstance(error, lubdub.ForcedOffline)
        self.assertIn(f"lubdub worker resume {held}", str(error))
        self.server.resume()
        worker = self.start()
        self.server.until("the third one is registered", lambda: worker.registered)

    def test_a_held_worker_that_registers_again_ends_too(self) -> None:
        ends: List[Any] = []
        self.server.enqueue("t")
        self.start(lambda task: (task.on_end(ends.append), task.wait(1000)))
        self.server.until("it runs", lambda: self.server.task("task_0001").state == "RUNNING")
        refused = {"error": "worker_held_offline", "machineId": "m", "remedy": "lubdub machine resume m"}
        self.server.intercept = lambda r: (409, refused) if r.path == "/v1/workers" else None
        self.server.forget()
        self.server.until("it ends", lambda: self.ended)
        self.server.advance(100)
        self.assertIn("`lubdub machine resume m`", str(self.ended[0]))
        self.assertEqual(len(self.server.seen("/v1/workers")), 2)
        self.assertEqual(([type(end).__name__ for end in ends], self.server.seen("*/completed")), (["Lost"], []))


class Drained(WorkerCase):
    def test_a_worker_on_a_drained_machine_waits_until_it_is_resumed(self) -> None:
        task = self.server.enqueue("t", 7)
        self.server.store.drained = True
        with self.assertLogs("lubdub.worker", "INFO") as logs:
            worker = self.start(machine_id="m7")
            self.server.until("it beats", lambda: self.server.store.workers and len(self.beats()) > 3)
        self.assertEqual(
            [line for line in logs.output if "is drained" in line],
            ["INFO:lubdub.worker:Machine m7 is drained; waiting until it is resumed"],
        )
        self.assertEqual((self.server.seen("*/claim"), self.ended), ([], []))
        self.server.resume_machine()
        self.assertEqual(self.done(task).output, 7)
        self.server.drain_machine()  # with running tasks it drains as usual
        self.server.until("it ends", lambda: self.ended)
        self.assertEqual((self.ended, self.server.requests[-1].path.rsplit("/", 1)[1]), ([None], "deregister"))
        self.assertFalse(worker.registered)

    def test_a_signal_ends_one_that_waits(self) -> None:
        self.server.store.drained = True
        worker = self.start()
        self.server.until("it beats", lambda: self.server.store.workers and self.beats())
        self.assertIsNone(self.stop(worker))
        self.assertEqual((self.server.seen("*/claim"), self.server.worker().status), ([], "OFFLINE"))
