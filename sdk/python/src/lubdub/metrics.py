"""Metrics hooks."""

from __future__ import annotations

import dataclasses
from typing import Optional


@dataclasses.dataclass(frozen=True)
class AttemptEnd:
    """The end of an attempt that a worker has begun. Durations are in seconds.

    type: the task's type; "" if it has none, or one that the worker has no handler for. queue: the worker's. attempt: counted from 1.
    outcome: the final state in the answer to the completion: SUCCEEDED, FAILED, CANCELLED or SNOOZED; LOST: the attempt was no longer the
    worker's, or its completion was refused; RETURNED: it was returned to the queue, since the worker stops.
    will_retry: whether the answer announces another attempt.
    duration: from the start of the handler until it returned, or until the attempt was completed or returned if it still runs then.
    queue_wait: how long the task was ready to be claimed before the claim; None: unknown, since the claim was repeated.
    first_heartbeat: from the start of the handler until the first accepted heartbeat of the attempt was answered, as far as this process
    knows: with isolated=True it learns that only while no code holds the GIL. None: no heartbeat was accepted.
    """

    type: str
    queue: str
    attempt: int
    outcome: str
    will_retry: bool
    duration: float
    queue_wait: Optional[float]
    first_heartbeat: Optional[float]


class Metrics:
    """Receives events to count: subclass it and pass them to your metrics library. Its methods are called from many threads and must
    neither block nor raise."""

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        """A heartbeat request: ok, refused or unanswered; for how many attempts, and its duration."""

    def refused(self, code: str) -> None:
        """A heartbeat or completion was refused with a code."""

    def lease_left(self, ratio: float) -> None:
        """With each accepted heartbeat, the share of the lease that was left: 1 is all, 0 nothing."""

    def completed(self, outcome: str) -> None:
        """A completion was answered."""

    def claimed(self, result: str, tasks: int) -> None:
        """A claim was answered or failed: ok, refused or unanswered; with how many tasks."""

    def running(self, count: int) -> None:
        """How many tasks a worker is running."""

    def ended(self, attempt: AttemptEnd) -> None:
        """An attempt that a worker has begun is over: called once for each."""
