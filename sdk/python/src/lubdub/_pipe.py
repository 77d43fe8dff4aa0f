"""JSON lines between a process and the child that beats for it. Writing never waits, however long the other side is busy."""

from __future__ import annotations

import json
import logging
import threading
from typing import IO, Any, Callable, Dict, List

MOST = 100_000  # messages that wait; what is more is dropped, as it can only be log lines and metrics

log = logging.getLogger("lubdub")


class Outbox:
    """Writes messages in their order, from a thread of its own. Of those with the same name only the newest is written, behind the
    others."""

    def __init__(self, to: IO[bytes], name: str) -> None:
        self.to = to
        self.cond = threading.Condition()
        self.waiting: List[Dict[str, Any]] = []
        self.newest: Dict[str, Dict[str, Any]] = {}
        self.closed = False
        threading.Thread(target=self.run, name=name, daemon=True).start()

    def put(self, message: Dict[str, Any], newest: str = "") -> None:
        """Has a message written."""
        with self.cond:
            if newest:
                self.newest[newest] = message
            elif len(self.waiting) < MOST:
                self.waiting.append(message)
            self.cond.notify()

    def close(self) -> None:
        """Writes what waits, and closes."""
        with self.cond:
            self.closed = True
            self.cond.notify()

    def run(self) -> None:
        """Writes until it is closed, or nobody reads."""
        try:
            while True:
                with self.cond:
                    while not self.waiting and not self.newest and not self.closed:
                        self.cond.wait()
                    messages = self.waiting + list(self.newest.values())
                    self.waiting, self.newest = [], {}
                    closed = self.closed
                if messages:
                    self.to.write(b"".join(json.dumps(m).encode() + b"\n" for m in messages))
                    self.to.flush()
                elif closed:
                    self.to.close()
                    return
        except (OSError, ValueError):
            pass  # whoever reads the other pipe finds the process gone


def listen(on: IO[bytes], take: Callable[[Dict[str, Any]], None]) -> None:
    """Gives out messages until there are no more."""
    try:
        for line in on:
            try:
                take(json.loads(line))
            except Exception:
                log.exception("a message between the process and its child could not be taken in")
    except (OSError, ValueError):
        pass
