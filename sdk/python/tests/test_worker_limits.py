"""Limits of a task: the watchdog, its run timeout, its heartbeat timeout."""

import threading
from typing import List

import lubdub
from lubdub.task import Task
from lubdub.testing import Server

from .workers import WorkerCase


class Limits(WorkerCase):
    def test_the_watchdog(self) -> None:
        once = {"maxAttempts": 1}
        task, moving = self.server.enqueue("t", retry=once), self.server.enqueue("t", "moves")
        ends: List[BaseException] = []

        def handler(t: Task) -> None:
            try:
                for pct in range(10):
                    t.wait(20)
                    if t.payload:
                        t.progress(pct)
            except lubdub.Stuck as end:
                ends.append(end)
                raise

        self.start(handler, watchdog=50)
        self.done(task)
        self.assertEqual(self.server.task(task).error["category"], "TIMEOUT")  # pyright: ignore
        self.assertEqual(self.server.task(task).error["message"], "no progress for 50 s")  # pyright: ignore
        self.assertEqual(self.done(moving).state, "SUCCEEDED")
        self.assertEqual(len(ends), 1)

    def test_a_task_takes_too_long(self) -> None:
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        heeding, deaf = self.server.enqueue("t", True), self.server.enqueue("t", False)
        with self.assertLogs("lubdub.worker", "WARNING") as logs:
            self.start(lambda t: t.wait(1000) if t.payload else proceed.wait(30), task_timeout=60)
            for task in (heeding, deaf):
                self.assertEqual(self.done(task).error["category"], "TIMEOUT")
        self.assertIn("is still running though its work must end", "\n".join(logs.output))

    def test_a_tasks_own_limit_overrides_the_default_but_not_the_workers(self) -> None:
        own, other = self.server.enqueue("t", runTimeoutMs=3_600_000), self.server.enqueue("t")
        worker = self.start(lambda t: t.wait(1000))
        self.assertEqual(self.done(other).error["category"], "TIMEOUT")
        self.assertEqual(self.done(own).state, "SUCCEEDED")
        self.stop(worker)
        own = self.server.enqueue("t", runTimeoutMs=3_600_000)
        self.start(lambda t: t.wait(1000), task_timeout=60)
        self.assertEqual(self.done(own).error["category"], "TIMEOUT")

    def test_a_timeout_that_leaves_no_room_for_one_retry_after(self) -> None:
        for timeout, warned in ((3.0, False), (2.999, True)):
            self.end()
            self.server.__exit__()
            self.server = Server(interval=1, timeout=timeout)
            self.addCleanup(self.server.__exit__)
            with self.assertLogs("lubdub.worker", "INFO") as logs:
                worker = self.start()
                self.server.until("it is registered", lambda: worker.registered)
            self.assertEqual("no room for one Retry-After" in "\n".join(logs.output), warned)
