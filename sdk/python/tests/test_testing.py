"""What lubdub.testing offers to the tests of users: a worker in a thread, and one handler without a server."""

import asyncio
import contextvars
import dataclasses
import sys
import threading
import time
from typing import Any, Callable, List, Optional
from unittest import mock

import lubdub
from lubdub import testing
from lubdub.task import Task
from lubdub.testing import HandClock, Server

from .coroutines import threads
from .helpers import PATIENCE, TestCase


class Threads(TestCase):
    """Workers in threads that the clock does not know."""

    def setUp(self) -> None:
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.worker = lubdub.Worker("default", client=self.server.client())

    def start(self, handler: Callable[[Task], Any], wait: bool = True) -> threading.Thread:
        self.worker.handle("t", handler)
        thread = threading.Thread(target=self.worker.run)
        thread.start()
        self.addCleanup(thread.join, PATIENCE)
        self.addCleanup(self.worker.kill)
        if wait:
            self.server.until("it is registered", lambda: self.worker.registered)
        return thread

    def done(self, task_id: str) -> Any:
        task = self.server.task(task_id)
        self.server.until("the task ends", lambda: task.over)
        return task

    def test_it_may_start_late(self) -> None:
        proceed, looked = threading.Event(), threading.Event()

        def run() -> None:
            proceed.wait(PATIENCE)
            self.worker.run()

        def over() -> bool:
            if looked.is_set():
                proceed.set()  # only after the clock has looked for a thread in vain
            looked.set()
            return task.over

        self.worker.handle("t", lambda task: task.payload)
        task = self.server.task(self.server.enqueue("t", 1))
        thread = threading.Thread(target=run)
        thread.start()
        self.server.until("the task ends", over)
        self.assertEqual(task.output, 1)
        self.worker.close()
        self.server.until("the worker ends", lambda: not thread.is_alive())

    def test_no_time_passes_while_it_works(self) -> None:
        began = self.server.clock.now()
        thread = self.start(lambda task: task.payload, wait=False)
        for number in range(20):
            self.assertEqual(self.done(self.server.enqueue("t", number)).output, number)
        self.worker.close()
        self.server.until("it deregisters", lambda: self.server.worker().status == "OFFLINE")
        self.assertEqual(self.server.clock.now(), began)
        self.server.until("it ends", lambda: not thread.is_alive())

    def test_handlers_that_really_work_are_waited_for(self) -> None:
        def function(task: Task) -> float:
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                pass
            time.sleep(0.1)
            return self.server.clock.now()

        async def coroutine(task: Task) -> float:
            await asyncio.sleep(0.1)
            return self.server.clock.now()

        self.worker.handle("coroutine", coroutine)
        self.start(function)
        for type in ("t", "coroutine"):
            began = self.server.clock.now()
            task = self.server.enqueue(type)
            self.server.advance(100)
            self.assertEqual((self.done(task).output, self.server.clock.now()), (began, began + 100))

    def test_a_retry_after_its_delay(self) -> None:
        attempts: List[Any] = []

        def handler(task: Task) -> str:
            attempts.append((task.attempt, self.server.clock.now() - began, task.last_checkpoint))
            task.checkpoint(task.attempt)
            if task.attempt == 1:
                raise ValueError("the first backoff is 1 s")
            if task.attempt == 2:
                raise lubdub.RetryAfter(60, "busy")
            return "done"

        self.start(handler)
        began = self.server.clock.now()
        task = self.server.task(self.server.enqueue("t"))
        self.server.advance(0.9)
        self.assertEqual((task.state, task.attempt), ("QUEUED", 1))
        self.server.advance(0.1)
        self.assertEqual((task.state, task.attempt), ("QUEUED", 2))
        self.server.advance(59)
        self.assertEqual(task.attempt, 2)
        self.server.advance(1)
        self.assertEqual((task.state, task.output), ("SUCCEEDED", "done"))
        self.assertEqual(attempts, [(1, 0, None), (2, 1, 1), (3, 61, 2)])

    def test_the_retry_policy(self) -> None:
        def handler(task: Task) -> None:
            at.append(self.server.clock.now())
            raise lubdub.Failure("no", task.payload)

        at: List[float] = []
        self.start(handler)
        policy = {"maxAttempts": 5, "initialBackoffMs": 2000, "multiplier": 3, "maxBackoffMs": 10_000}
        self.assertEqual(self.done(self.server.enqueue("t", "TIMEOUT", retry=policy)).state, "FAILED")
        self.assertEqual([after - before for before, after in zip(at, at[1:])], [2, 6, 10, 10])
        at.clear()
        self.assertEqual(self.done(self.server.enqueue("t", "DATA_QUALITY")).state, "FAILED")
        self.assertEqual(len(at), 1)
        at.clear()
        self.done(self.server.enqueue("t", "USER_CODE"))
        self.assertEqual(len(at), 3)

    def test_a_scheduled_task_becomes_due(self) -> None:
        self.start(lambda task: self.server.clock.now())
        began = self.server.clock.now()
        task = self.server.task(self.server.enqueue("t", delayMs=90_000))
        self.server.advance(89)
        self.assertEqual(task.state, "SCHEDULED")
        self.server.advance(1)
        self.assertEqual((task.state, task.output), ("SUCCEEDED", began + 90))

    def test_a_lost_worker(self) -> None:
        def handler(task: Task) -> Any:
            if task.attempt == 1:
                task.wait(1000)
            return self.server.clock.now() - cut

        self.start(handler)
        task = self.server.task(self.server.enqueue("t"))
        own = self.server.task(self.server.enqueue("t", heartbeatTimeoutMs=6000, heartbeatIntervalMs=2000))
        self.server.until("they run", lambda: (task.state, own.state) == ("RUNNING", "RUNNING"))
        self.server.advance(100)
        self.assertEqual((task.state, own.state), ("RUNNING", "RUNNING"))
        cut = self.server.clock.now()
        self.server.cut_off()
        lost = self.server.worker()
        self.server.until("it is lost", lambda: lost.status == "OFFLINE")
        self.assertTrue(20 < self.server.clock.now() - cut <= 30)
        self.assertEqual((task.state, task.reason, task.attempt, own.attempt), ("QUEUED", "WORKER_LOST", 1, 1))
        self.server.enqueue("t")
        self.server.advance(60)
        self.assertEqual((task.attempt, own.attempt), (1, 1))  # the lost worker claims nothing
        self.server.reconnect()
        self.assertEqual((self.done(task.id).attempt, self.done(own.id).attempt), (2, 2))
        self.assertIsNot(self.server.worker(), lost)

    def test_losses_end_a_task_that_has_too_many(self) -> None:
        task = self.server.task(self.server.enqueue("t", retry={"maxLosses": 1}))
        self.start(lambda t: t.wait(1000))
        for state in ("QUEUED", "FAILED"):
            self.server.until("it runs", lambda: task.state == "RUNNING")
            self.server.expire(task.id)
            self.assertEqual(task.state, state)

    def test_attempts_that_the_server_ends(self) -> None:
        self.start(lambda t: t.wait(1000))
        for reason, failures, losses in (("RUN_TIMEOUT", 1, 0), ("START_TIMEOUT", 0, 1), ("HEARTBEAT_TIMEOUT", 0, 1)):
            task = self.server.task(self.server.enqueue("t"))
            self.server.until("it runs", lambda task=task: task.state == "RUNNING")
            self.server.expire(task.id, reason)
            self.assertEqual((task.state, task.retries.failures, task.retries.losses), ("QUEUED", failures, losses))
        final = self.server.task(self.server.enqueue("t", retry={"maxAttempts": 1}))
        for reason in ("DEADLINE_EXCEEDED", "RUN_TIMEOUT"):
            final.state = "RUNNING"
            self.server.expire(final.id, reason)
            self.assertEqual(final.state, "FAILED")

    def test_a_task_to_be_cancelled_whose_worker_deregisters(self) -> None:
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        thread = self.start(lambda t: proceed.wait(PATIENCE))
        task = self.server.task(self.server.enqueue("t"))
        self.server.until("it runs", lambda: task.state == "RUNNING")
        self.server.cancel(task.id)
        self.worker.kill()
        self.server.until("it deregisters", lambda: self.server.worker().status == "OFFLINE")
        self.assertEqual((task.state, task.reason), ("FAILED", "WORKER_LOST"))
        proceed.set()
        self.server.until("it ends", lambda: not thread.is_alive())

    def test_a_client_that_is_lost(self) -> None:
        client = self.server.client()
        attempt = self.server.hand.run(
            client.track(self.server.dispatch(heartbeatIntervalMs=10_000, heartbeatTimeoutMs=30_000)).start
        )
        self.server.advance(100)
        self.assertEqual(self.server.task(attempt.task_id).state, "RUNNING")
        attempt.abandon()
        self.server.advance(31)
        self.assertEqual(self.server.task(attempt.task_id).reason, "HEARTBEAT_TIMEOUT")

    def test_running(self) -> None:
        self.worker.handle("t", lambda task: task.payload)
        with self.server.running(self.worker) as worker:
            self.assertTrue(worker.registered)
            task = self.server.enqueue("t", 1, delayMs=60_000)
            self.server.advance(60)
            self.assertEqual(self.server.task(task).output, 1)
        self.assertEqual((worker.registered, self.server.worker().status), (False, "OFFLINE"))
        refused = lubdub.Worker("default", client=self.server.client(token="wrong"))
        refused.handle("t", print)
        with self.assertRaises(lubdub.errors.Unauthorized), self.server.running(refused):
            self.fail("it is refused")
        failing = lubdub.Worker("default", client=self.server.client(), default=print)
        failing.handle("t", print)
        with self.assertRaises(KeyError), self.server.running(failing):
            raise KeyError
        self.assertFalse(failing.registered)

    def test_without_anything_that_waits_it_fails_after_real_seconds(self) -> None:
        with mock.patch.object(sys.modules[HandClock.__module__], "PATIENCE", 0):
            with self.assertRaisesRegex(AssertionError, "nothing waits for the test's clock.*: never"):
                self.server.until("never", lambda: False)


class OneHandler(TestCase):
    def test_the_output_and_what_was_recorded(self) -> None:
        def handler(task: Task) -> Any:
            task.progress(50, "half")
            task.checkpoint({"row": 3})
            task.progress(75)
            task.wait(3600)
            task.check()
            return [task.payload, task.type, task.attempt, task.last_checkpoint, task.envelope.get("labels")]

        recorded = testing.Recorded()
        found = testing.run(
            handler, (1, 2), type="t", attempt=3, last_checkpoint={"row": 1}, recorded=recorded, labels={"a": "b"}
        )
        self.assertEqual(found, [[1, 2], "t", 3, {"row": 1}, {"a": "b"}])
        self.assertEqual(recorded.progress, [(50, "half"), (75, "half")])
        self.assertEqual(recorded.checkpoints, [{"row": 3}])
        self.assertIsNone(testing.run(lambda task: task.last_checkpoint))

    def test_coroutines(self) -> None:
        name: "contextvars.ContextVar[str]" = contextvars.ContextVar("name", default="")

        async def handler(task: Task) -> str:
            await asyncio.sleep(0)
            task.checkpoint(1)
            return name.get()

        async def main() -> str:
            return testing.run(handler)  # a loop is running

        async def cancelled(task: Task) -> None:
            raise asyncio.CancelledError

        name.set("x")
        self.assertEqual((testing.run(handler), asyncio.run(main())), ("x", "x"))
        with self.assertRaisesRegex(lubdub.Failure, "was cancelled"):
            testing.run(cancelled)
        for thread in threads("lubdub-loop"):
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())

    def test_a_workers_handler_with_its_middleware(self) -> None:
        worker = lubdub.Worker("q", client=lubdub.Client("http://127.0.0.1:1"), default=lambda task: "default")
        worker.use(lambda handler: lambda task: ["outer", handler(task)])
        worker.handle("t", lambda task: task.payload)
        self.assertEqual(testing.run(worker, 1, type="t"), ["outer", 1])
        self.assertEqual(testing.run(worker), ["outer", "default"])
        with self.assertRaisesRegex(lubdub.Failure, "no handler"):
            testing.run(worker, type="unknown")

    def test_values_are_what_a_server_stores(self) -> None:
        @dataclasses.dataclass
        class Sum:
            parts: Any

        found: List[Any] = []

        def handler(task: Task) -> Any:
            found.append((task.last_checkpoint, task.envelope.get("queue")))
            return {1: Sum((2, 3))}

        for target, queue in ((handler, None), (self.worker_of(handler), "q")):
            self.assertEqual(testing.run(target, type="t", last_checkpoint=(4, 5)), {"1": {"parts": [2, 3]}})
            self.assertEqual(found.pop(), ([4, 5], queue))

    def worker_of(self, handler: Callable[[Task], Any]) -> lubdub.Worker:
        worker = lubdub.Worker("q", client=lubdub.Client("http://127.0.0.1:1"))
        worker.handle("t", handler)
        return worker

    def test_what_the_attempt_would_end_with(self) -> None:
        recorded = testing.Recorded()

        for error in (ValueError("x"), lubdub.Snooze(5), lubdub.RetryAfter(5, "busy"), lubdub.Cancelled("enough")):

            def handler(task: Task, error: Exception = error) -> None:
                task.progress(10)
                raise error

            with self.assertRaises(type(error)) as caught:
                testing.run(handler, recorded=recorded)
            self.assertIs(caught.exception, error)
        self.assertEqual(recorded.progress, [(10, None)] * 4)
        for output in (object(), "x" * (257 << 10)):
            with self.assertRaises(lubdub.OutputError):
                testing.run(lambda task, output=output: output)
        with self.assertRaises(lubdub.ConfigurationError):
            testing.run(lambda task: task.checkpoint(None))
        with self.assertRaisesRegex(AssertionError, "does not come here"):
            testing.run(lambda task: task.wait())

    def test_a_handler_that_completes_its_task(self) -> None:
        def failing(task: Task) -> Optional[str]:
            task.fail("no")
            return "x"

        self.assertEqual(testing.run(lambda task: task.done(3)), 3)
        with self.assertRaises(lubdub.TaskFailed):
            testing.run(failing)
