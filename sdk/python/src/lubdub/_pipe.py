"""JSON lines between a process and its heartbeat child. Writing never blocks, however long the other side is busy."""

from __future__ import annotations

import contextlib
import json
import logging
from typing import IO, Any, Callable, Dict, List

from . import _exit

MOST = 100_000  # pending messages; more are dropped, as they can only be log lines and metrics
FLUSH_WITHIN = 1.0  # seconds that flush waits at most

log = logging.getLogger("lubdub")


class Outbox:
    """Writes messages in order, from a separate thread. Of several messages with the same name only the newest is written, at its
    position."""

    def __init__(self, to: IO[bytes], name: str) -> None:
        self.to = to
        self.cond = _exit.Condition()
        self.waiting: List[Dict[str, Any]] = []
        self.newest: Dict[str, Dict[str, Any]] = {}
        self.closed = self.writing = False
        _exit.start(self.run, name)

    def put(self, message: Dict[str, Any], newest: str = "") -> None:
        """Queues a message."""
        with self.cond:
            if newest:
                self.newest[newest] = message
            elif len(self.waiting) < MOST:
                self.waiting.append(message)
            self.cond.notify_all()

    def flush(self) -> None:
        """Waits, for a short time, until all messages are written."""
        with self.cond:
            self.cond.wait_for(lambda: self.closed or not (self.waiting or self.newest or self.writing), FLUSH_WITHIN)

    def close(self) -> None:
        """Writes the pending messages and closes."""
        with self.cond:
            self.closed = True
            self.cond.notify_all()

    def run(self) -> None:
        """Writes until it is closed or the reader is gone."""
        try:
            while True:
                with self.cond:
                    self.writing = False
                    self.cond.notify_all()
                    while not self.waiting and not self.newest and not self.closed:
                        self.cond.wait()
                    messages = self.waiting + list(self.newest.values())
                    self.waiting, self.newest = [], {}
                    closed, self.writing = self.closed, True
                if messages:
                    self.to.write(b"".join(json.dumps(m).encode() + b"\n" for m in messages))
                    self.to.flush()
                elif closed:
                    return
        except (OSError, ValueError):
            pass  # the reader of the other pipe notices that the process is gone
        finally:
            self.close()
            with contextlib.suppress(OSError, ValueError):
                self.to.close()


def listen(on: IO[bytes], take: Callable[[Dict[str, Any]], None]) -> None:
    """Passes on messages until the input ends."""
    try:
        for line in on:
            try:
                take(json.loads(line))
            except Exception:
                log.exception("a message between the process and its heartbeat process could not be handled")
    except (OSError, ValueError):
        pass
