"""Metrics hooks."""

from __future__ import annotations


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
