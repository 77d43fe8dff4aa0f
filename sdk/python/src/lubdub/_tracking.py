"""Connects tracked attempts with the loop that sends their heartbeats."""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Mapping, Optional

from ._beats import Accepted, Batch, BeatEntry, Listener
from ._call import Caller
from ._clock import Clock
from ._isolated import IsolatedBatch
from ._log import Outage
from ._endpoints import Endpoints
from .task import Task, Holder
from .ends import End
from .errors import ClosedError
from .metrics import Metrics

LOOK_EVERY = 1.0  # seconds between two checks of a strict lease: timers stop while the host sleeps


class AttemptListener(Listener):
    """Passes the results of heartbeats to attempts, metrics and the log."""

    def __init__(self, metrics: Metrics, log: logging.Logger, clock: Clock) -> None:
        self.metrics, self.logger = metrics, log
        self.outage = Outage(clock, log)
        self.attempts: Dict[str, Task] = {}

    def accepted(self, beats: List[Accepted]) -> None:
        for beat in beats:
            attempt = self.attempts.get(beat.key)
            if attempt is not None:
                attempt.accepted(beat)

    def cancel(self, key: str, reason: str) -> None:
        attempt = self.attempts.get(key)
        if attempt is not None:
            attempt.cancel_for(reason)

    def lost(self, key: str, code: str, fields: Mapping[str, Any]) -> None:
        attempt = self.attempts.get(key)
        if attempt is not None:
            attempt.lost_by(code, fields)

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        guarded(self.metrics.beat, result, attempts, seconds)

    def unanswered(self, what: str, text: str) -> None:
        self.outage.failed(what, text)

    def answered(self, what: str) -> None:
        self.outage.answered(what)

    def refused(self, code: str) -> None:
        guarded(self.metrics.refused, code)

    def late(self, seconds: float) -> None:
        self.logger.warning(
            "The thread that sends heartbeats was held up for %.1f s: the process was stopped or got too little CPU, or the GIL was held, "
            "for example by C code in a handler; in that case isolated=True helps: a child process then sends them",
            seconds,
        )

    def log(self, level: str, text: str) -> None:
        self.logger.log(getattr(logging, level.upper()), "%s", text)


def guarded(call: Callable[..., None], *arguments: Any) -> None:
    """Calls user code; an error in it must not stop heartbeats."""
    try:
        call(*arguments)
    except Exception:
        logging.getLogger("lubdub").exception("a metrics callback failed")


class AttemptGroup(Holder):
    """All attempts of a client whose callbacks go to the same endpoints."""

    def __init__(
        self,
        caller: Caller,
        endpoints: Endpoints,
        metrics: Metrics,
        log: logging.Logger,
        isolated: Optional[Dict[str, Any]],
    ) -> None:
        self.endpoints = endpoints
        self.listener = AttemptListener(metrics, log, caller.clock)
        self.beats = (
            Batch(caller, endpoints, self.listener)
            if isolated is None
            else IsolatedBatch({**isolated, "urls": endpoints.urls}, caller.clock, self.listener)
        )
        self.closed = False

    def add(self, attempt: Task) -> None:
        """Subscribes an attempt."""
        if self.closed:
            raise ClosedError("the client is closed")
        self.listener.attempts[f"{attempt.task_id}/{attempt.attempt}"] = attempt

    def forget(self, attempt: Task) -> None:
        """Unsubscribes an attempt."""
        self.listener.attempts.pop(f"{attempt.task_id}/{attempt.attempt}", None)

    def hold(self, entry: BeatEntry) -> None:
        self.beats.hold(entry)

    def report(self, key: str, now: bool = False) -> None:
        self.beats.report(key, now)

    def release(self, key: str, ending: bool = False) -> int:
        try:
            return self.beats.release(key, ending)
        finally:
            self.listener.attempts.pop(key, None)

    def drop(self, key: str) -> None:
        self.beats.drop(key)

    def close(self, cause: End) -> None:
        """Stops the heartbeats and ends the work."""
        self.closed = True
        self.beats.close()
        for attempt in list(self.listener.attempts.values()):
            attempt.end(cause)


class Leases:
    """Checks strict leases until their attempts are over."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def watch(self, attempt: Task) -> None:
        """Checks an attempt's lease now and again when it may have expired."""
        left = attempt.look()
        if left is not None:
            self.clock.call_later(min(left, LOOK_EVERY), lambda: self.watch(attempt))
