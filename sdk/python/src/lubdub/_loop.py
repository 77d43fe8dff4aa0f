"""The event loop of coroutine handlers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Optional

from . import _exit
from .errors import ClosedError

LAST = 2.0  # seconds that cancelled coroutines may take to end


class Loop:
    """An event loop in a separate thread, started on first use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: Optional[asyncio.AbstractEventLoop] = None
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

    def end(self) -> None:
        """Cancels the coroutines that still run, and ends the loop."""
        with self.lock:
            first, self.over = not self.over, True
            if first and self.loop is not None:
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
