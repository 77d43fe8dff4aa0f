"""A worker on the caller's event loop."""

import asyncio
import gc
import inspect
import os
import signal
import threading
import warnings
from functools import partial
from typing import Any, List

import lubdub
from lubdub._loop import Loop
from lubdub.task import Task

from .coroutines import AsyncCase, threads
from .helpers import PATIENCE


class RunAsync(AsyncCase):
    def worker(self, handler: Any, **options: Any) -> lubdub.Worker:
        worker = lubdub.Worker("default", client=self.server.client(), **options)
        worker.handle("t", handler)
        return worker

    def acts(self) -> List[str]:
        """The requests of the worker about itself."""
        return [request.path.rsplit("/", 1)[1] for request in self.server.seen("/v1/workers*")]

    async def ended(self, *task_ids: str) -> List[Any]:
        """The outputs of tasks, once they have ended."""
        await self.until(lambda: all(self.server.task(task_id).over for task_id in task_ids))
        return [self.server.task(task_id).output for task_id in task_ids]

    def test_coroutines_run_on_the_callers_loop_and_functions_in_threads(self) -> None:
        async def main() -> None:
            proceed = asyncio.Event()  # belongs to this loop
            order: List[str] = []

            async def handler(task: Task) -> Any:
                self.assertIs(asyncio.get_running_loop(), loop)
                await proceed.wait()
                return task.payload

            def function(task: Task) -> Any:
                return threading.get_ident()

            async def hook() -> None:
                self.assertIs(asyncio.get_running_loop(), loop)
                order.append("startup" if not self.server.requests else "shutdown")

            loop = asyncio.get_running_loop()
            worker = self.worker(handler)
            worker.handle("function", function)
            worker.on_startup(hook)
            worker.on_shutdown(hook)
            ids = [self.server.enqueue("t", 1), self.server.enqueue("t", 2), self.server.enqueue("function")]
            running = asyncio.ensure_future(worker.run_async())
            await self.ended(ids[2])
            self.assertEqual(len(threads("lubdub-worker-beats")), 1)
            proceed.set()
            one, two, thread = await self.ended(*ids)
            self.assertEqual((one, two), (1, 2))
            self.assertNotEqual(thread, threading.get_ident())
            worker.close()
            self.assertIsNone(await running)
            self.assertEqual((order, self.acts()), (["startup", "shutdown"], ["workers", "drain", "deregister"]))
            self.assertFalse(loop.is_closed())

        asyncio.run(main())

    def test_cancelling_it_lets_handlers_finish_and_twice_returns_their_tasks(self) -> None:
        async def main() -> None:
            for twice in (False, True):
                self.server.requests.clear()
                begun, proceed = asyncio.Event(), asyncio.Event()
                ends: List[str] = []

                async def handler(task: Task) -> str:
                    begun.set()
                    try:
                        await proceed.wait()
                        return "done"
                    finally:
                        ends.append("handler")

                worker = self.worker(handler)
                worker.on_shutdown(partial(ends.append, "shutdown"))
                task = self.server.enqueue("t")
                running = asyncio.ensure_future(worker.run_async())
                await begun.wait()
                running.cancel()
                await self.until(lambda: "drain" in self.acts())
                self.assertFalse(running.done())
                if twice:
                    running.cancel()
                else:
                    proceed.set()
                with self.assertRaises(asyncio.CancelledError) as caught:
                    await running
                found = self.server.task(task)
                self.assertEqual((found.state, found.output), ("QUEUED", None) if twice else ("SUCCEEDED", "done"))
                raised = caught.exception
                cause = (
                    raised if raised.__cause__ else raised.__context__ or raised
                ).__cause__  # until Python 3.10 a copy
                self.assertEqual([cause.task_ids] if isinstance(cause, lubdub.Unfinished) else [], [[task]] * twice)
                self.assertEqual(self.acts()[-1], "deregister")
                self.assertEqual(ends, ["handler", "shutdown"])
                self.server.cancel(task) if twice else None

        asyncio.run(main())

    def test_the_soft_stop_cancels_handlers(self) -> None:
        async def main() -> None:
            begun = asyncio.Event()

            async def handler(task: Task) -> None:
                begun.set()
                await asyncio.Event().wait()

            worker = self.worker(handler, soft_stop=0, hard_stop=PATIENCE)
            task = self.server.enqueue("t")
            running = asyncio.ensure_future(worker.run_async())
            await begun.wait()
            worker.close()
            with self.assertRaises(lubdub.Unfinished) as caught:
                await running
            self.assertEqual(caught.exception.task_ids, [task])

        asyncio.run(main())

    def test_an_event_loop_that_shuts_down_returns_the_tasks_of_its_coroutines(self) -> None:
        task = self.server.enqueue("t", retry={"maxAttempts": 1})

        async def main() -> None:
            begun = asyncio.Event()

            async def handler(task: Task) -> None:
                begun.set()
                await asyncio.Event().wait()

            running = asyncio.ensure_future(self.worker(handler).run_async())
            await begun.wait()
            self.assertFalse(running.done())
            raise KeyError

        with self.assertRaises(KeyError):
            asyncio.run(main())
        found = self.server.task(task)
        self.assertEqual((found.state, found.completions, self.acts()[-1]), ("QUEUED", [], "deregister"))

    def test_a_loop_that_has_ended_leaves_no_coroutine_that_was_never_awaited(self) -> None:
        async def work() -> None:
            pass

        closed = asyncio.new_event_loop()
        closed.close()
        ended = Loop()
        ended.end()
        for loop, error in ((Loop(closed), RuntimeError), (ended, lubdub.ClosedError)):
            coroutine = work()
            with self.assertRaises(error), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                loop.run(coroutine, lambda cancel: None)
            gc.collect()
            self.assertEqual((inspect.getcoroutinestate(coroutine), caught), (inspect.CORO_CLOSED, []))

    def test_a_hook_that_raises_stop_iteration(self) -> None:
        worker = self.worker(print)
        worker.on_startup(lambda: next(iter(())))
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        running = loop.create_task(worker.run_async())
        loop.run_until_complete(asyncio.wait([running], timeout=PATIENCE))
        self.assertTrue(running.done())
        error = running.exception()
        self.assertEqual((type(error), type(error and error.__cause__)), (RuntimeError, StopIteration))

    def test_the_client_may_be_an_async_client(self) -> None:
        client = self.server.client()
        self.assertIs(lubdub.Worker("default", client=lubdub.AsyncClient.of(client)).client, client)

    def test_errors(self) -> None:
        async def main() -> None:
            worker = lubdub.Worker("default", client=self.server.client())
            with self.assertRaises(lubdub.ConfigurationError):
                await worker.run_async()
            self.server.intercept = lambda _: (403, {"error": "forbidden"})
            worker.handle("t", lambda task: None)
            with self.assertRaises(lubdub.errors.Forbidden):
                await worker.run_async()
            with self.assertRaises(lubdub.ConfigurationError):
                await worker.run_async()

        asyncio.run(main())

    def test_signals(self) -> None:
        async def main() -> None:
            loop, other = asyncio.get_running_loop(), asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR1, other.set)
            before = signal.getsignal(signal.SIGTERM)
            worker = self.worker(print)
            running = asyncio.ensure_future(worker.run_async())
            await self.until(lambda: worker.registered)
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.wait_for(other.wait(), PATIENCE)  # the loop's own signals arrive as well
            other.clear()
            self.assertFalse(running.done())
            os.kill(os.getpid(), signal.SIGTERM)
            self.assertIsNone(await running)
            self.assertEqual(self.acts()[-1], "deregister")
            self.assertIs(signal.getsignal(signal.SIGTERM), before)
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.wait_for(other.wait(), PATIENCE)

        if os.name == "posix":
            asyncio.run(main())
