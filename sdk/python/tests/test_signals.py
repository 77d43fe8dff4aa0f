"""SIGTERM and SIGINT while workers run."""

import asyncio
import os
import signal
import unittest
from typing import Any, List

import lubdub

from .coroutines import AsyncCase
from .helpers import PATIENCE


@unittest.skipUnless(os.name == "posix", "only there a process can send itself signals")
class Signals(AsyncCase):
    def setUp(self) -> None:
        super().setUp()
        self.order: List[str] = []

        def earlier(number: int, _: Any) -> None:
            self.order.append("earlier handler")

        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, earlier))
        self.earlier = earlier

    def tearDown(self) -> None:
        self.assertIs(signal.getsignal(signal.SIGTERM), self.earlier)
        self.assertEqual(signal.set_wakeup_fd(-1), -1)
        super().tearDown()

    def terminate(self) -> None:
        signal.raise_signal(signal.SIGTERM)

    def worker(self) -> lubdub.Worker:
        worker = lubdub.Worker("default", client=self.server.client())
        worker.handle("t", print)
        return worker

    async def running(self, worker: lubdub.Worker) -> "asyncio.Future[None]":
        """A worker that has registered."""
        running = asyncio.ensure_future(worker.run_async())
        await self.until(lambda: worker.registered)
        return running

    async def over(self, *running: "asyncio.Future[None]") -> None:
        """Waits until workers have stopped."""
        await asyncio.wait_for(asyncio.gather(*running), PATIENCE)

    def test_workers_of_one_loop_end_in_any_order(self) -> None:
        async def main() -> None:
            loop, other = asyncio.get_running_loop(), asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR1, other.set)
            for first in (0, 1):
                workers = [self.worker(), self.worker(), self.worker()]
                running = [await self.running(worker) for worker in workers]
                workers[first].close()
                await self.over(running.pop(first))
                self.assertIsNot(signal.getsignal(signal.SIGTERM), self.earlier)
                self.terminate()
                await self.over(*running)
                other.clear()
                signal.raise_signal(signal.SIGUSR1)
                await asyncio.wait_for(other.wait(), PATIENCE)
            loop.remove_signal_handler(signal.SIGUSR1)

        asyncio.run(main())
        self.assertEqual(self.order, [])

    def test_signal_handlers_that_the_loop_adds_and_removes_meanwhile(self) -> None:
        async def main() -> None:
            loop, other = asyncio.get_running_loop(), asyncio.Event()
            for earlier in (False, True):
                loop.add_signal_handler(signal.SIGUSR1, other.set) if earlier else None
                running = await self.running(self.worker())
                if earlier:
                    loop.remove_signal_handler(signal.SIGUSR1)
                else:
                    loop.add_signal_handler(signal.SIGUSR1, other.set)
                self.terminate()
                await self.over(running)
                if not earlier:
                    signal.raise_signal(signal.SIGUSR1)
                    await asyncio.wait_for(other.wait(), PATIENCE)
                    loop.remove_signal_handler(signal.SIGUSR1)

        asyncio.run(main())
        self.assertEqual(self.order, [])

    def test_a_third_signal_has_its_earlier_effect_though_a_hook_does_not_end(self) -> None:
        async def main() -> None:
            proceed = asyncio.Event()

            async def hook() -> None:
                self.order.append("hook")
                await proceed.wait()

            worker = self.worker()
            worker.on_shutdown(hook)
            running = await self.running(worker)
            self.terminate()
            await self.until(lambda: self.order)
            self.terminate()
            self.assertEqual(self.order, ["hook"])
            self.terminate()
            self.assertEqual(self.order, ["hook", "earlier handler"])
            proceed.set()
            await self.over(running)

        asyncio.run(main())

    def test_while_a_function_of_the_start_runs_a_signal_has_its_earlier_effect(self) -> None:
        worker = self.worker()
        worker.on_startup(self.terminate)
        worker.on_startup(worker.close)
        worker.run()
        self.assertEqual((self.order, self.server.requests), (["earlier handler"], []))

    def test_a_signal_to_a_forked_process_does_not_stop_its_parent(self) -> None:
        async def main() -> None:
            worker = self.worker()
            running = await self.running(worker)
            child = os.fork()
            if not child:
                self.terminate()
                os._exit(int(self.order != ["earlier handler"] or signal.set_wakeup_fd(-1) != -1))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            await asyncio.sleep(0)
            self.assertNotIn("drain", [request.path.rsplit("/", 1)[1] for request in self.server.requests])
            worker.close()
            await self.over(running)

        asyncio.run(main())
