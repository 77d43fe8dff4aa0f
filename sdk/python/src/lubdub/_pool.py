"""Threads for the blocking calls that coroutines await."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
from typing import Any, Callable, Optional, OrderedDict, TypeVar

from . import _exit
from ._call import cancelled_by
from ._clock import Clock, Event

T = TypeVar("T")

THREADS = 32  # calls of a client at a time
REST = 5.0  # seconds that a thread waits for the next call


class Pool:
    """Threads that make calls, at most this many at a time; the calls beyond wait for their turn. rest: how many seconds a thread without a
    call waits for the next one: on a busy machine a new thread takes long to start, and blocks the event loop meanwhile.
    """

    def __init__(self, clock: Clock, size: int = THREADS, rest: float = REST) -> None:
        self.clock, self.size, self.rest = clock, size, rest
        self.cond = clock.condition()
        self.waiting: OrderedDict[Event, Callable[[], None]] = collections.OrderedDict()  # by what cancels them
        self.threads = self.resting = 0

    def begin(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Makes a call, with the context variables of the caller. Cancelling the future cancels the request that is under way."""
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[T]" = loop.create_future()
        cancel, context = Event(self.clock), contextvars.copy_context()

        def work() -> None:
            outcome: Any = None
            failure: Optional[BaseException] = None
            try:
                with cancelled_by(cancel):
                    outcome = call()
            except _exit.Exiting:
                raise
            except BaseException as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: no coroutine awaits the call
                loop.call_soon_threadsafe(settle, future, outcome, failure)

        def over(_: Any) -> None:
            cancel.set()
            with self.cond:
                self.waiting.pop(cancel, None)

        future.add_done_callback(over)
        self._submit(cancel, lambda: context.run(work))
        return future

    def end(self) -> None:
        """Ends the threads without a call. Later calls have a thread each."""
        with self.cond:
            self.rest = 0
            self.cond.notify_all()

    def _submit(self, cancel: Event, work: Callable[[], None]) -> None:
        with self.cond:
            self.waiting[cancel] = work
            if len(self.waiting) <= self.resting:
                self.cond.notify()
                return
            if self.threads == self.size:
                return
            self.threads += 1
        try:
            self.clock.spawn(self._run, "lubdub-calls")
        except BaseException:  # no more threads can be started
            with self.cond:
                self.threads -= 1
                if self.threads:
                    return  # another one makes the call
                del self.waiting[cancel]
            raise

    def _run(self) -> None:
        while True:
            with self.cond:
                if not self.waiting and self.rest:
                    self.resting += 1
                    self.cond.wait(self.rest)
                    self.resting -= 1
                if not self.waiting:
                    self.threads -= 1
                    return
                _, work = self.waiting.popitem(last=False)
            work()
            del work  # and what it refers to


def settle(future: "asyncio.Future[T]", outcome: Any, error: Optional[BaseException] = None) -> None:
    """Ends a future, in its event loop."""
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    elif isinstance(error, StopIteration):  # which a future refuses
        wrapped = RuntimeError("the call raised StopIteration")
        wrapped.__cause__ = error
        future.set_exception(wrapped)
    else:
        future.set_exception(error)
