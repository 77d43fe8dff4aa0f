"""The event loop of coroutine handlers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import threading
from typing import Any, Callable, List, Optional

from . import _exit
from .errors import ClosedError

LAST = 2.0  # seconds that cancelled coroutines may take to end


class Loop:
    """The caller's event loop, or one in a separate thread, started on first use."""

    def __init__(self, callers: Optional[asyncio.AbstractEventLoop] = None) -> None:
        self.lock = threading.Lock()
        self.loop = callers
        self.own = callers is None
        self.over = False

    def get(self) -> asyncio.AbstractEventLoop:
        """The loop."""
        with self.lock:
            if self.over:
                raise ClosedError("the worker has stopped")
            if self.loop is None:
                loop = asyncio.new_event_loop()
                try:
                    _exit.start(lambda: self.keep(loop), "lubdub-loop")
                except BaseException:
                    loop.close()
                    raise
                self.loop = loop
            return self.loop

    def run(self, work: Any, until: Callable[[Callable[[], None]], object]) -> Any:
        """Runs a coroutine for another thread, and returns its result. until gets a function that cancels it; then asyncio.CancelledError
        is raised."""
        coroutines: List[Any] = [work]
        try:
            loop = self.get()

            async def main() -> Any:
                task = asyncio.ensure_future(work)

                def cancel() -> None:
                    with contextlib.suppress(RuntimeError):  # the loop is closed
                        loop.call_soon_threadsafe(task.cancel)

                until(cancel)
                return await task

            whole = main()
            coroutines.append(whole)
            doing = asyncio.run_coroutine_threadsafe(whole, loop)
            over = _exit.blocked(doing.cancel)
            try:
                return doing.result()
            except (asyncio.CancelledError, concurrent.futures.CancelledError):
                _exit.check()
                raise asyncio.CancelledError from None
            finally:
                over()
        finally:
            for one in coroutines:  # those that never started, since the loop has ended
                if inspect.iscoroutine(one) and inspect.getcoroutinestate(one) == inspect.CORO_CREATED:
                    one.close()

    def end(self) -> None:
        """Accepts no more coroutines; cancels those that still run and ends the loop, unless it is the caller's."""
        with self.lock:
            first, self.over = not self.over, True
            if first and self.own and self.loop is not None:
                self.loop.call_soon_threadsafe(self.loop.stop)

    def keep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Runs the loop until it ends."""
        asyncio.set_event_loop(loop)
        with contextlib.ExitStack() as last:
            last.callback(loop.close)
            last.callback(_exit.blocked(self.end))
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=LAST))
