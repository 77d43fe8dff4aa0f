"""The hooks of a worker's start and end."""

import asyncio
from typing import Any, List

import lubdub
from lubdub.task import Task

from .workers import WorkerCase


class Hooks(WorkerCase):
    def setUp(self) -> None:
        super().setUp()
        self.order: List[str] = []

    def worker(self, handler: Any = None) -> lubdub.Worker:
        worker = lubdub.Worker("default", client=self.server.client())
        worker.handle("t", handler or (lambda task: self.order.append("handler")))
        return worker

    def at(self, what: str) -> None:
        """Notes a hook, with the last request before it."""
        self.order.append(
            f"{what} after {self.server.requests[-1].path.rsplit('/', 1)[1] if self.server.requests else ''}"
        )

    def test_they_run_once_before_the_registration_and_after_the_end(self) -> None:
        loops: List[Any] = []

        async def handler(task: Task) -> None:
            loops.append(asyncio.get_running_loop())
            self.order.append("handler")

        worker = self.worker(handler)

        @worker.on_startup
        def first() -> None:  # pyright: ignore[reportUnusedFunction]
            self.at("first")

        @worker.on_startup
        async def second() -> None:  # pyright: ignore[reportUnusedFunction]
            loops.append(asyncio.get_running_loop())
            self.at("second")

        @worker.on_shutdown
        async def third() -> None:  # pyright: ignore[reportUnusedFunction]
            loops.append(asyncio.get_running_loop())
            self.at("third")

        worker.on_shutdown(lambda: self.at("fourth"))
        ids = [self.server.enqueue("t"), self.server.enqueue("t")]
        self.run_worker(worker)
        for task in ids:
            self.done(task)
        self.assertIsNone(self.stop(worker))
        self.assertEqual(self.order[:4], ["first after ", "second after ", "handler", "handler"])
        self.assertEqual(self.order[4:], ["third after deregister", "fourth after deregister"])
        self.assertEqual((len(loops), len(set(map(id, loops)))), (4, 1))

    def test_a_startup_hook_that_fails_ends_the_worker_before_it_registers(self) -> None:
        worker, failure = self.worker(), RuntimeError("no database")

        @worker.on_startup
        async def fail() -> None:  # pyright: ignore[reportUnusedFunction]
            raise failure

        worker.on_startup(lambda: self.at("another"))
        worker.on_shutdown(lambda: self.at("shutdown"))
        self.run_worker(worker)
        self.server.until("it ends", lambda: self.ended)
        self.assertIs(self.ended[0], failure)
        self.assertEqual((self.order, self.server.requests), (["shutdown after "], []))

    def test_a_shutdown_hook_that_fails_is_logged_and_the_others_run(self) -> None:
        worker = self.worker()

        @worker.on_shutdown
        async def close_pool() -> None:  # pyright: ignore[reportUnusedFunction]
            raise RuntimeError("no pool")

        @worker.on_shutdown
        def cancelled() -> None:  # pyright: ignore[reportUnusedFunction]
            raise asyncio.CancelledError

        worker.on_shutdown(lambda: self.at("shutdown"))
        self.run_worker(worker)
        self.server.until("it is registered", lambda: worker.registered)
        with self.assertLogs("lubdub.worker", "ERROR") as logs:
            self.assertIsNone(self.stop(worker))
        self.assertEqual(len(logs.output), 2)
        self.assertIn("close_pool", logs.output[0])
        self.assertIn("no pool", logs.output[0])
        self.assertEqual(self.order, ["shutdown after deregister"])

    def test_a_coroutine_of_the_end_that_does_not_end_is_cancelled(self) -> None:
        worker = self.worker()

        @worker.on_shutdown
        async def endless() -> None:  # pyright: ignore[reportUnusedFunction]
            await asyncio.Event().wait()

        worker.on_shutdown(lambda: self.at("shutdown"))
        self.run_worker(worker)
        self.server.until("it is registered", lambda: worker.registered)
        with self.assertLogs("lubdub.worker", "ERROR") as logs:
            self.assertIsNone(self.stop(worker))
        self.assertIn("endless", logs.output[0])
        self.assertEqual(self.order, ["shutdown after deregister"])

    def test_a_worker_that_is_closed_before_it_runs_calls_none(self) -> None:
        worker = self.worker()
        worker.on_startup(lambda: self.at("startup"))
        worker.on_shutdown(lambda: self.at("shutdown"))
        worker.close()
        self.run_worker(worker)
        self.server.until("it ends", lambda: self.ended)
        self.assertEqual((self.ended, self.order, self.server.requests), ([None], [], []))

    def test_hooks_that_are_refused(self) -> None:
        worker = self.worker()
        none: Any = None
        for add in (worker.on_startup, worker.on_shutdown):
            with self.assertRaisesRegex(lubdub.ConfigurationError, "not callable"):
                add(none)
        self.run_worker(worker)
        self.server.until("it is registered", lambda: worker.registered)
        for add in (worker.on_startup, worker.on_shutdown):
            with self.assertRaisesRegex(lubdub.ConfigurationError, "before run"):
                add(print)

    def test_a_stop_during_the_start_cancels_a_hook_and_nothing_registers(self) -> None:
        worker = self.worker()

        @worker.on_startup
        async def endless() -> None:  # pyright: ignore[reportUnusedFunction]
            worker.close()
            await asyncio.Event().wait()

        worker.on_startup(lambda: self.at("another"))
        worker.on_shutdown(lambda: self.at("shutdown"))
        self.run_worker(worker)
        self.server.until("it ends", lambda: self.ended)
        self.assertEqual((self.ended, self.order, self.server.requests), ([None], ["shutdown after "], []))

    def test_a_registration_that_is_refused(self) -> None:
        worker = self.worker()
        worker.on_shutdown(lambda: self.at("shutdown"))
        self.server.intercept = lambda _: (403, {"error": "forbidden"})
        self.run_worker(worker)
        self.server.until("it ends", lambda: self.ended)
        self.assertIsInstance(self.ended[0], lubdub.errors.Forbidden)
        self.assertEqual(self.order, ["shutdown after workers"])

    def test_handlers_that_still_run_after_the_hard_stop_get_a_moment(self) -> None:
        async def handler(task: Task) -> None:
            try:
                self.order.append("begun")
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                self.order.append("cleaned up")

        worker = self.worker(handler)
        worker.on_shutdown(lambda: self.at("shutdown"))
        self.server.enqueue("t")
        self.run_worker(worker)
        self.server.until("it runs", lambda: self.order)
        worker.kill()
        self.server.until("it ends", lambda: self.ended)
        self.assertEqual(self.order, ["begun", "cleaned up", "shutdown after deregister"])
