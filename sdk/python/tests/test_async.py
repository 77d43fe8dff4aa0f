"""The client for asyncio: calls and creations."""

import asyncio
import contextvars
import inspect
import threading
from typing import Any, AsyncIterator, Dict, Iterator, List

import lubdub
from lubdub import errors
from lubdub._pool import THREADS
from lubdub.testing import Request

from .coroutines import AsyncCase, threads
from .helpers import PATIENCE, ReceivedRequest


class Calls(AsyncCase):
    def test_calls_do_not_block_the_event_loop(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            self.server.intercept = self.hold
            calls = [asyncio.ensure_future(client.enqueue("default", "t", n)) for n in range(2 * THREADS)]
            await self.until(self.held.is_set)
            self.assertLessEqual(len(threads("lubdub-calls")), THREADS)
            self.proceed.set()
            self.server.intercept = None
            tasks = await asyncio.gather(*calls)
            self.assertEqual(
                [self.server.task(task["taskId"]).fields["payload"] for task in tasks], [*range(2 * THREADS)]
            )
            self.assertEqual((await client.get_task(tasks[0]["taskId"]))["state"], "QUEUED")
            with self.assertRaises(errors.TaskNotFound):
                await client.get_task("none")
            with self.assertRaises(lubdub.ConfigurationError):
                await client.enqueue("", "t")
            self.assertEqual((await client.dispatch({"type": "t"}))["attempt"], 1)

        self.run_async(main)

    def test_each_call_of_the_client_is_a_coroutine_with_the_same_parameters(self) -> None:
        for name, method in inspect.getmembers(lubdub.Client, inspect.isfunction):
            if name.startswith("_") or name in OWN:
                continue
            found = getattr(lubdub.AsyncClient, name)
            ours = list(inspect.signature(found).parameters.values())
            self.assertEqual(
                [(p.name, p.kind, p.default) for p in ours],
                [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()],
                name,
            )
            if name not in ("events", "track"):
                self.assertTrue(inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found), name)
        with self.assertRaises(TypeError):
            lubdub.AsyncClient("http://127.0.0.1:1", tokn="x")  # type: ignore

    def test_pages(self) -> None:
        pages: List[Any] = [{"tasks": [{"taskId": "a"}], "nextPageToken": "n"}, {"tasks": [{"taskId": "b"}]}]
        self.server.intercept = lambda _: (200, pages.pop(0))

        async def main(client: lubdub.AsyncClient) -> None:
            self.assertEqual([task["taskId"] async for task in client.iter_tasks(queue="q")], ["a", "b"])

        self.run_async(main)

    def test_a_cancelled_call_ends_its_request(self) -> None:
        def answer(_: ReceivedRequest) -> Any:
            self.held.set()
            self.proceed.wait(PATIENCE)
            return 200, {}, {}

        async def main() -> None:
            async with lubdub.AsyncClient(self.web(answer).url, timeout=10 * PATIENCE) as client:
                call = asyncio.ensure_future(client.get_task("t"))
                await self.until(self.held.is_set)
                call.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await call
                await self.until(lambda: self.resting(client))  # though the server has not answered

        asyncio.run(main())

    def test_a_cancelled_call_ends_its_retries_and_one_that_has_not_begun_is_not_made(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            self.server.intercept = lambda _: (503, {"error": "overloaded"}, {"Retry-After": "3600"})
            bodies: Any = {"tasks": [{"type": "t"}]}
            calls = [asyncio.ensure_future(client.get_task("t")) for _ in range(THREADS - 1)]
            calls.append(asyncio.ensure_future(client.create_tasks(bodies)))  # type: ignore
            await self.until(lambda: len(self.server.requests) == THREADS)
            late = asyncio.ensure_future(client.get_task("late"))
            await asyncio.sleep(0)
            pool = client.client.pool
            self.assertEqual(len(pool.waiting), 1)
            late.cancel()
            await asyncio.wait([late])
            self.assertEqual(len(pool.waiting), 0)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
            await self.until(lambda: self.resting(client))
            self.assertEqual(len(self.server.requests), THREADS)

        self.run_async(main)

    def test_a_thread_waits_for_the_next_call_until_the_client_is_closed(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            made: List[threading.Thread] = []
            self.server.intercept = lambda _: made.append(threading.current_thread())
            self.assertGreater(client.client.pool.rest, 0)
            client.client.pool.rest = 10 * PATIENCE
            for _ in range(2):
                await client.enqueue("default", "t")
                await self.until(lambda: self.resting(client))
            self.assertEqual(made, made[:1] * 2)

        self.run_async(main)

    def test_a_call_that_raises_stop_iteration(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            with self.assertRaises(RuntimeError) as caught:
                await asyncio.wait_for(client.call(lambda: next(iter(()))), PATIENCE)
            self.assertIsInstance(caught.exception.__cause__, StopIteration)

        self.run_async(main)

    def test_close_ends_calls_that_wait(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            self.server.intercept = lambda _: (503, {"error": "overloaded"}, {"Retry-After": "3600"})
            calls = [asyncio.ensure_future(client.get_task("t")) for _ in range(THREADS + 1)]
            await self.until(lambda: len(self.server.requests) == THREADS)
            await client.close()
            found = await asyncio.gather(*calls, return_exceptions=True)
            self.assertEqual([type(one) for one in found], [errors.Overloaded] * THREADS + [lubdub.ClosedError])

        self.run_async(main)

    def test_context_variables_of_the_caller(self) -> None:
        trace: "contextvars.ContextVar[str]" = contextvars.ContextVar("trace", default="")

        async def main(client: lubdub.AsyncClient) -> None:
            trace.set("00-1")
            task = await client.enqueue("default", "t")
            self.assertEqual(self.server.task(task["taskId"]).fields["traceparent"], "00-1")

        self.run_async(main, traceparent=trace.get)


OWN = ("after_fork", "ask", "attempt_of", "endpoints_of", "isolation", "post", "run", "settings")


class Many(AsyncCase):
    def setUp(self) -> None:
        super().setUp()
        self.sizes: List[int] = []

        def create(request: Request) -> Any:
            items: List[Dict[str, Any]] = request.json()["tasks"]
            self.sizes.append(len(items))
            return 200, {"results": [{"status": 201, "taskId": f"t{item['payload']}"} for item in items]}

        self.server.intercept = create

    def test_sync_and_async_iterables(self) -> None:
        main_thread = threading.get_ident()
        readers: List[int] = []

        def read() -> Iterator[lubdub.NewTask]:
            for number in range(1500):
                readers.append(threading.get_ident())
                yield lubdub.NewTask("q", "t", number)

        async def aread() -> AsyncIterator[lubdub.NewTask]:
            for task in read():
                yield task

        async def main(client: lubdub.AsyncClient) -> None:
            for tasks in (aread(), read(), list(read())):
                self.sizes, readers[:] = [], []
                found = [task["taskId"] async for task, _ in client.enqueue_many(tasks) if task is not None]
                self.assertEqual(found, [f"t{number}" for number in range(1500)])
                self.assertEqual(self.sizes, [1000, 500])
                if not isinstance(tasks, list):
                    self.assertEqual(main_thread in readers, inspect.isasyncgen(tasks))
            self.sizes = []
            exact = [task async for task, _ in client.enqueue_many([lubdub.NewTask("q", "t", 1)] * 1000)]
            self.assertEqual((len(exact), self.sizes), (1000, [1000]))

        self.run_async(main)

    def test_an_error_is_a_result_and_the_loop_ends_when_the_client_is_closed(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            bad = lubdub.NewTask("", "t")
            found = [error async for _, error in client.enqueue_many([bad, lubdub.NewTask("q", "t", 1)])]
            self.assertEqual([type(error) for error in found], [lubdub.ConfigurationError, type(None)])
            read: List[int] = []

            async def endless() -> AsyncIterator[lubdub.NewTask]:
                while True:
                    read.append(1)
                    yield lubdub.NewTask("q", "t", 1)

            async for _ in client.enqueue_many(endless()):
                await client.close()
            self.assertEqual(len(read), 1000)

        self.run_async(main)
