"""An attempt as a context: with and async with."""

from __future__ import annotations

import asyncio
import sys
import threading
from functools import partial
from types import TracebackType
from typing import Any, Callable, Optional, Type

from ._call import cancelled_by
from ._pool import Pool
from .task import Task
from .ends import End


class Tracking:
    """What Client.track returns. Entered, by with or async with, it reports the start and sends heartbeats. On exit it completes the
    attempt unless the block did: as SUCCEEDED with the handle's output, or as failed with the error, which is raised again.

    With async with the block is cancelled when the work must end, and the cause is raised in place of asyncio.CancelledError.
    """

    def __init__(self, make: Callable[[], Task], pool: Pool) -> None:
        self._make, self._pool = make, pool
        self._attempt: Optional[Task] = None
        self._task: Optional["asyncio.Task[Any]"] = None
        self._interrupted = False
        self._lock = threading.Lock()
        self._given_up: Optional[BaseException] = None

    def start(self) -> Task:
        """Starts without a context: complete the handle, or abandon it."""
        self._attempt = self._make()
        return self._attempt

    def __enter__(self) -> Task:
        return self.start()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._attempt is not None:
            self._attempt.close(error)

    def _start(self) -> Task:
        attempt = self._make()
        with self._lock:
            given_up, self._attempt = self._given_up, None if self._given_up is not None else attempt
        if given_up is not None:  # the caller no longer waits, and has cancelled this call
            with cancelled_by(None):
                attempt.close(given_up)
        return attempt

    async def __aenter__(self) -> Task:
        loop = asyncio.get_running_loop()
        starting = self._pool.begin(self._start)
        try:
            attempt = await asyncio.shield(starting)
        except asyncio.CancelledError as error:
            with self._lock:
                self._given_up, begun = error, self._attempt
            starting.cancel()  # ends its retries
            if begun is not None:
                await asyncio.shield(self._pool.begin(partial(begun.close, error)))
            raise
        self._task = asyncio.current_task()

        def on_end(end: End) -> None:
            try:
                loop.call_soon_threadsafe(self._interrupt)
            except RuntimeError:
                pass  # the loop is closed: nothing waits for the result

        attempt.on_end(on_end)
        return attempt

    def _interrupt(self) -> None:
        if self._task is not None and not self._interrupted:
            self._interrupted = True
            self._task.cancel()

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        task, self._task = self._task, None
        attempt = self._attempt
        if attempt is None:
            return
        instead: Optional[End] = None
        if self._interrupted and isinstance(error, asyncio.CancelledError):
            if sys.version_info >= (3, 11) and task is not None:
                task.uncancel()
            instead = attempt.cause
            error = instead or error
        await asyncio.shield(self._pool.begin(partial(attempt.close, error)))
        if instead is not None:
            raise instead
