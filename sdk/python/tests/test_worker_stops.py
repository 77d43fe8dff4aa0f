"""A worker that stops: soft and hard stop, what it returns, signals."""

import signal
import threading
import time
from typing import List

import lubdub
from lubdub._clock import Clock, Event
from lubdub.task import Task
from lubdub.testing import Server

from .helpers import TestCase
from .workers import WorkerCase


class Stops(WorkerCase):
    def test_heartbeats_continue_while_work_finishes(self) -> None:
        task = self.server.enqueue("t")
        worker = self.start(lambda t: t.wait(18))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        self.server.enqueue("t", "no worker claims this one")
        self.assertIsNone(self.stop(worker))
        self.assertEqual(self.server.task(task).state, "SUCCEEDED")
        drained = self.server.seen(f"/v1/workers/{self.server.worker().id}/drain")[0].at
        self.assertGreaterEqual(len([r for r in self.beats() if r.at > drained]), 1)
        self.assertEqual(len(self.server.seen("*/started")), 1 if len(self.server.seen("*/started")) == 1 else 2)

    def beat_often(self) -> None:
        self.server.__exit__()
        self.server = Server(interval=1, timeout=3)
        self.addCleanup(self.server.__exit__)

    def listed_until_the_end(self, task_ids: List[str], since: float) -> None:
        """Every inventory since a time includes these tasks, and the last call returns them to the queue."""
        late = [r.json()["tasks"] for r in self.beats() if r.at > since]
        self.assertGreater(len(late), 1)
        for tasks in late:
            self.assertLessEqual(set(task_ids), {t["taskId"] for t in tasks})
        self.assertEqual(self.server.requests[-1].path.rsplit("/", 1)[1], "deregister")
        for task in task_ids:
            self.assertEqual((self.server.task(task).state, self.server.task(task).completions), ("QUEUED", []))

    def test_tasks_that_give_up_at_the_soft_stop_are_returned_and_others_completed(self) -> None:
        self.beat_often()

        def handler(task: Task) -> str:
            if task.payload == "fails before":
                task.wait(5)
                raise ValueError("no")
            try:
                task.wait(1000)
            except lubdub.Stopping:
                if task.payload == "returns":
                    Event(self.server.clock).wait(3)
                    return "in time"
                if task.payload == "fails after":
                    raise lubdub.Failure("half done", "DATA_QUALITY", retryable=False) from None
                if task.payload == "is stopped":
                    raise lubdub.Stopped("loading") from None
                raise
            return ""

        ids = {
            p: self.server.enqueue("t", p, retry={"maxAttempts": 1})
            for p in ("fails before", "returns", "gives up", "fails after", "is stopped")
        }
        worker = self.start(handler)
        self.server.until("they run", lambda: {self.server.task(t).state for t in ids.values()} == {"RUNNING"})
        began = self.server.clock.now()
        error = self.stop(worker)
        self.assertTrue(20 <= self.server.clock.now() - began < 25)
        back = sorted([ids["gives up"], ids["fails after"], ids["is stopped"]])
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, back)
        self.assertEqual(
            {p: self.server.task(ids[p]).state for p in ("fails before", "returns")},
            {"fails before": "FAILED", "returns": "SUCCEEDED"},
        )
        self.listed_until_the_end(back, began + 20)

    def test_tasks_cancelled_or_lost_before_are_not_returned(self) -> None:
        self.beat_often()
        proceed = threading.Event()
        self.addCleanup(proceed.set)

        def handler(task: Task) -> None:
            try:
                task.wait(1000)
            except lubdub.End:
                if task.payload == "lost":
                    proceed.wait(30)
                else:
                    Event(self.server.clock).wait(22)
                raise

        cancelled, lost = self.server.enqueue("t", "cancelled"), self.server.enqueue("t", "lost")
        worker = self.start(handler)
        self.server.until("they run", lambda: {self.server.task(i).state for i in (cancelled, lost)} == {"RUNNING"})
        self.server.cancel(cancelled, "enough")
        self.server.supersede(lost)
        self.server.advance(2)
        self.assertIsNone(self.stop(worker))
        self.assertEqual(self.server.task(cancelled).state, "CANCELLED")
        self.assertEqual(self.server.task(lost).completions, [])

    def test_the_hard_stop_returns_running_tasks(self) -> None:
        self.beat_often()
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        task = self.server.enqueue("t")
        worker = self.start(lambda t: proceed.wait(30))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        began = self.server.clock.now()
        error = self.stop(worker)
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, [task])
        self.assertTrue(25 <= self.server.clock.now() - began < 27)
        self.listed_until_the_end([task], began)
        proceed.set()
        self.server.until("the handler ends", lambda: not worker.active_count)
        self.assertEqual(self.server.task(task).completions, [])

    def test_the_end_reports_that_no_server_confirmed_it(self) -> None:
        self.server.enqueue("t")
        worker = self.start(lambda t: t.wait(1000))
        self.server.until("it runs", lambda: worker.active_count)
        self.server.advance(1)
        self.server.down()
        self.assertRegex(
            str(self.stop(worker)),
            "^1 task was not finished and returned to the queue: task_0001. No server confirmed that",
        )

    def test_a_task_with_an_unconfirmed_completion_is_returned(self) -> None:
        self.server.intercept = (
            lambda r: (503, {"error": "store_unavailable"}) if r.path.endswith("/completed") else None
        )
        task = self.server.enqueue("t")
        worker = self.start(lambda t: None)
        self.server.until("it completes", lambda: self.server.seen("*/completed"))
        error = self.stop(worker)
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, [task])

    def test_kill_skips_to_it(self) -> None:
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        task = self.server.enqueue("t")
        worker = self.start(lambda t: proceed.wait(30))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        began = self.server.clock.now()
        worker.kill()
        self.server.until("the worker ends", lambda: self.ended)
        self.assertIsInstance(self.ended[0], lubdub.Unfinished)
        self.assertLess(self.server.clock.now() - began, 5)

    def test_the_server_drains(self) -> None:
        task = self.server.enqueue("t")
        self.start(lambda t: t.wait(60))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        self.server.drain()
        self.server.until("the worker ends", lambda: self.ended)
        self.assertEqual((self.ended[0], self.server.task(task).state), (None, "SUCCEEDED"))


class Signals(TestCase):
    def test_a_signal_and_a_second_one(self) -> None:
        with Server(clock=Clock(), interval=3600, timeout=7200) as server:  # no heartbeat wakes the main thread
            task = server.enqueue("t")
            worker = lubdub.Worker("default", client=server.client())
            proceed = threading.Event()

            @worker.handler("t")
            def handle(t: Task) -> None:  # pyright: ignore[reportUnusedFunction]
                signal.pthread_kill(
                    threading.get_ident(), signal.SIGTERM
                )  # not to the main thread, which waits without waking up
                for _ in range(500):
                    if server.worker().draining:
                        break
                    time.sleep(0.01)
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
                proceed.wait(30)

            with self.assertRaises(lubdub.Unfinished) as caught:
                worker.run()
            proceed.set()
            self.assertEqual(caught.exception.task_ids, [task])
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)
