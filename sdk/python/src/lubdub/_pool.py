"""Threads for the blocking calls that coroutines await."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
import threading
from typing import Any, Callable, Deque, TypeVar

from . import _exit
from ._call import cancelled_by
from ._clock import Clock, Event

T = TypeVar("T")

THREADS = 32  # calls of a client at a time


class Pool:
    """Threads that make calls, at most this many at a time; the calls beyond wait for their turn. A thread exists only while there is a
    call for it."""

    def __init__(self, clock: Clock, size: int = THREADS) -> None:
        self.clock, self.size = clock, size
        self.lock = threading.Lock()
        self.waiting: Deque[Callable[[], None]] = collections.deque()
        self.threads = 0

    def begin(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Makes a call, with the context variables of the caller. Cancelling the future cancels the request that is under way."""
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[T]" = loop.create_future()
        cancel, context = Event(self.clock), contextvars.copy_context()

        def settle(resolve: Callable[[Any], None], outcome: Any) -> None:
            if not future.done():
                resolve(outcome)

        def work() -> None:
            if cancel.is_set():
                return
            try:
                with cancelled_by(cancel):
                    done = future.set_result, call()
            except _exit.Exiting:
                raise
            except BaseException as error:
                done = future.set_exception, error
            with contextlib.suppress(RuntimeError):  # the loop is closed: no coroutine awaits the call
                loop.call_soon_threadsafe(settle, *done)

        future.add_done_callback(lambda _: cancel.set())
        self._submit(lambda: context.run(work))
        return future

    def _submit(self, work: Callable[[], None]) -> None:
        with self.lock:
            self.waiting.append(work)
            if self.threads == self.size:
                return
            self.threads += 1
        try:
            self.clock.spawn(self._run, "lubdub-calls")
        except BaseException:  # no more threads can be started
            with self.lock:
                self.threads -= 1
                if self.threads:
                    return  # another one makes the call
                self.waiting.remove(work)
            raise

    def _run(self) -> None:
        while True:
            with self.lock:
                if not self.waiting:
                    self.threads -= 1
                    return
                work = self.waiting.popleft()
            work()
