"""The client for asyncio: results, events and attempts."""

import asyncio
import datetime
import json
import threading
from typing import Any, Callable, List

import lubdub
from lubdub import errors
from lubdub._pool import THREADS
from lubdub.testing import Request, Server

from .coroutines import AsyncCase, threads
from .helpers import PATIENCE, TestCase


class Results(AsyncCase):
    def end(self, *task_ids: str) -> None:
        for task_id in task_ids:
            vars(self.server.task(task_id)).update(output=task_id, state="SUCCEEDED")
        self.server.store.wake()

    def test_ten_thousand_results_need_one_thread(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            asyncio.get_running_loop().set_debug(False)  # which is slow with so many
            tasks = [self.server.enqueue("t") for _ in range(10_000)]
            before = threading.active_count()
            waiting = asyncio.gather(*(client.result(task_id) for task_id in tasks))
            await self.until(lambda: len(self.server.seen("/v1/tasks:wait")) > 1)
            self.assertEqual((threading.active_count() - before, len(client.client.results.awaited)), (1, 10_000))
            self.end(*tasks)
            self.assertEqual(await waiting, tasks)

        self.run_async(main)

    def test_outcomes(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            ended, silent, failed = (self.server.enqueue("t") for _ in range(3))
            self.end(ended)
            self.server.task(failed).state = "FAILED"
            self.assertEqual(await asyncio.gather(client.result(ended), client.result(ended, 3600)), [ended, ended])
            for task_id, timeout, error in (
                (failed, None, lubdub.TaskFailed),
                ("none", None, errors.TaskNotFound),
                ("a b", None, lubdub.ConfigurationError),
                (silent, 0, TimeoutError),
                (silent, datetime.timedelta(milliseconds=1), TimeoutError),
            ):
                with self.assertRaises(error):
                    await client.result(task_id, timeout)
            last = asyncio.ensure_future(client.result(silent))
            await self.until(lambda: client.client.results.awaited)
            await client.close()
            with self.assertRaises(lubdub.ClosedError):
                await last

        self.run_async(main)

    def test_cancelling_leaves_nothing(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            first, second = self.server.enqueue("t"), self.server.enqueue("t")
            waiting = [asyncio.ensure_future(client.result(task_id)) for task_id in (first, first, second)]
            await self.until(lambda: len(self.server.seen("/v1/tasks:wait")) > 1)
            awaited = client.client.results.awaited
            event = awaited[first].ended
            for call, left in zip(waiting, ([first, second], [second], [])):
                call.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await call
                self.assertEqual(list(awaited), left)
            self.assertEqual(event.calls, [])
            await self.until(lambda: not threads("lubdub-results"))

        self.run_async(main)

    def test_a_closed_event_loop_does_not_affect_other_callers(self) -> None:
        client, first, second = self.server.client(), self.server.enqueue("t"), self.server.enqueue("t")
        found: List[Any] = []
        asked = threading.Event()

        def both(request: Request) -> None:
            if request.json()["taskIds"] == [first, second]:
                asked.set()

        self.server.intercept = both
        loop = asyncio.new_event_loop()
        waiting = loop.create_task(lubdub.AsyncClient.of(client).result(first))
        loop.run_until_complete(asyncio.sleep(0))
        ignore: Callable[..., None] = lambda *_: None
        loop.set_exception_handler(ignore)  # it would log that the task was pending
        loop.close()
        thread = threading.Thread(target=lambda: found.append(client.result(second)), daemon=True)
        thread.start()
        self.assertTrue(asked.wait(PATIENCE))
        self.end(first, second)
        thread.join(PATIENCE)
        self.assertEqual((found, waiting.done()), ([second], False))


class Timeouts(TestCase):
    def test_the_timeout_of_a_result_follows_the_clock_of_the_client(self) -> None:
        async def main() -> None:
            client = lubdub.AsyncClient.of(server.client())
            waiting = asyncio.ensure_future(client.result(server.enqueue("t"), timeout=10 * PATIENCE))
            while not client.client.results.awaited:
                await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, server.advance, 10 * PATIENCE)
            with self.assertRaisesRegex(TimeoutError, "has not ended within"):
                await asyncio.wait_for(waiting, PATIENCE)

        with Server() as server:
            asyncio.run(main())


class Events(AsyncCase):
    def test_events_in_order_with_their_cursor(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            async with client.events(type=["task.*"]) as events:
                for number in range(3):
                    self.server.add(number)
                found: List[Any] = []
                async for event in events:
                    found.append((event["id"], events.cursor))
                    if len(found) == 3:
                        break
                self.assertEqual(found, [(0, "c0"), (1, "c1"), (2, "c2")])
            self.assertEqual([event async for event in events], [])
            await self.until(lambda: not self.server.streams)

        self.run_async(main)

    def test_a_cancelled_read_loses_no_event(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            async with client.events() as events:
                reading = asyncio.ensure_future(events.__anext__())
                await self.until(lambda: self.server.streams)
                reading.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await reading
                self.server.add(7)
                await self.until(lambda: not self.server.events)
                self.assertEqual(events.cursor, "")
                self.assertEqual(((await events.__anext__())["id"], events.cursor), (7, "c7"))
                reading = asyncio.ensure_future(events.__anext__())
                await asyncio.sleep(0)
            await asyncio.wait([reading])
            self.assertIsInstance(reading.exception(), StopAsyncIteration)

        self.run_async(main)

    def test_a_stream_that_is_dropped_takes_no_lock(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            dropped: List[Any] = [client.events()]
            thread = threading.Thread(target=dropped.clear, daemon=True)
            with client.client.caller.closing.cond:  # as if the garbage collector ran in a thread that holds this lock
                thread.start()
                thread.join(PATIENCE)
                self.assertFalse(thread.is_alive())

        self.run_async(main)

    def test_an_error(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            bodies = [json.dumps({"error": "invalid_cursor"})]
            web = self.web(lambda _: (400, bodies[0].encode(), {}))
            async with lubdub.AsyncClient(web.url) as other:
                with self.assertRaises(errors.InvalidCursor):
                    await other.events(after="x").__anext__()

        self.run_async(main)


class Track(AsyncCase):
    def test_an_attempt(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            envelope = await client.dispatch({"type": "t", "payload": 2})
            async with client.track(envelope) as task:
                self.server.intercept = self.hold
                task.output = task.payload + 1
                going = asyncio.ensure_future(self.let_go())
            await going
            self.assertEqual(self.server.task(envelope["taskId"]).output, 3)

        self.run_async(main)

    async def let_go(self) -> None:
        """Runs only if leaving the block does not block the event loop."""
        await self.until(self.held.is_set)
        self.server.intercept = None
        self.proceed.set()

    def test_a_start_that_is_cancelled_during_an_outage_leaves_nothing(self) -> None:
        async def main(client: lubdub.AsyncClient) -> None:
            envelope = self.server.dispatch()
            self.server.down()

            async def work() -> None:
                async with client.track(envelope):
                    self.fail("it cannot start")

            task = asyncio.ensure_future(work())
            await self.until(lambda: self.server.requests)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self.until(lambda: self.resting(client))

        self.run_async(main)

    def test_a_start_that_is_cancelled_while_under_way_is_completed_with_retries(self) -> None:
        refused: List[Request] = []

        def answer(request: Request) -> Any:
            if request.path.endswith("/started"):
                self.hold(request)
            elif request.path.endswith("/completed") and not refused:
                refused.append(request)
                return 503, {"error": "overloaded"}

        async def main(client: lubdub.AsyncClient) -> None:
            envelope = self.server.dispatch()
            self.server.intercept = answer
            starting = asyncio.ensure_future(client.track(envelope).__aenter__())
            await self.until(self.held.is_set)
            starting.cancel()
            await asyncio.wait([starting])
            self.proceed.set()
            await self.until(lambda: self.resting(client))
            self.assertEqual((self.server.task(envelope["taskId"]).state, len(refused)), ("FAILED", 1))

        self.run_async(main)

    def test_completions_during_an_outage_leave_threads_for_other_calls(self) -> None:
        def answer(request: Request) -> Any:
            return (
                (503, {"error": "overloaded"}, {"Retry-After": "30"}) if request.path.endswith("/completed") else None
            )

        async def main(client: lubdub.AsyncClient) -> None:
            async def work() -> None:
                async with client.track(self.server.dispatch()):
                    pass

            self.server.intercept = answer
            works = [asyncio.ensure_future(work()) for _ in range(THREADS)]
            await self.until(lambda: len(self.server.seen("*/completed")) == THREADS)
            task = await asyncio.wait_for(client.enqueue("default", "t"), PATIENCE)
            self.assertEqual(task["state"], "QUEUED")
            await client.close()
            await asyncio.wait(works)
            self.assertEqual({type(work.exception()) for work in works}, {errors.Overloaded})

        self.run_async(main)
