"""Tests with an AsyncClient and a fake server."""

import asyncio
import threading
from typing import Any, Callable, Coroutine, List, Mapping, Optional

import lubdub
from lubdub._clock import Clock, Event
from lubdub._http import Stream
from lubdub.testing import Request, Server

from .helpers import PATIENCE, TestCase


def threads(name: str) -> List[threading.Thread]:
    """The threads of a name."""
    return [thread for thread in threading.enumerate() if thread.name == name]


class Noting(Server):
    """Streams events that the test adds."""

    def __init__(self) -> None:
        super().__init__(clock=Clock())
        self.events: List[int] = []
        self.added = threading.Condition()
        self.streams = 0

    def add(self, number: int) -> None:
        with self.added:
            self.events.append(number)
            self.added.notify_all()

    def stream(self, url: str, headers: Mapping[str, str], limit: float, cancel: Optional[Event] = None) -> Stream:
        assert cancel is not None
        self.streams += 1

        def wake() -> None:
            with self.added:
                self.added.notify_all()

        cancel.then(wake)
        lines: List[bytes] = []

        def line(seconds: float) -> bytes:
            with self.added:
                if not self.added.wait_for(lambda: lines or self.events or cancel.is_set(), PATIENCE):
                    raise AssertionError("no event")
                if not lines and self.events:
                    number = self.events.pop(0)
                    lines.extend([b"id: c%d\n" % number, b'data: {"id": %d}\n' % number, b"\n"])
                return lines.pop(0) if lines else b""

        def close() -> None:
            self.streams -= 1

        return Stream(200, {}, line, close)


class AsyncCase(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.server = Noting()
        self.addCleanup(self.server.__exit__)
        self.held, self.proceed = threading.Event(), threading.Event()
        self.addCleanup(self.proceed.set)

    def hold(self, request: Request) -> None:
        """Holds requests until the test proceeds."""
        self.held.set()
        if not self.proceed.wait(PATIENCE):
            raise AssertionError("the event loop is blocked")

    def run_async(self, main: Callable[[lubdub.AsyncClient], Coroutine[Any, Any, None]], **options: Any) -> None:
        """Runs a coroutine with a client, which leaves no thread behind."""

        async def whole() -> None:
            async with lubdub.AsyncClient.of(self.server.client(**options)) as client:
                await main(client)

        asyncio.run(whole())
        for name in ("lubdub-calls", "lubdub-results"):
            for thread in threads(name):
                thread.join(PATIENCE)
                self.assertFalse(thread.is_alive())

    def resting(self, client: lubdub.AsyncClient) -> bool:
        """Whether no thread of the client makes a call."""
        pools = client.client.pool, client.client.tracking
        return all(pool.threads == pool.resting for pool in pools)

    async def until(self, holds: Callable[[], Any]) -> None:
        """Lets the event loop run until a condition holds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while not holds():
            self.assertLess(loop.time(), end)
            await asyncio.sleep(0.001)
