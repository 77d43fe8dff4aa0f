"""What is counted."""

from __future__ import annotations


class Metrics:
    """Is told what happens; make a subclass that hands it to what you count with. Its methods are called from many threads, and must
    neither block nor raise."""

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        """A request with beats: ok, refused or unanswered; for how many attempts, and how long it took."""

    def refused(self, code: str) -> None:
        """A beat or a completion was refused with a code."""

    def lease_left(self, ratio: float) -> None:
        """With each accepted beat, what was left of the lease then: 1 is all, 0 nothing."""

    def completed(self, outcome: str) -> None:
        """A completion was answered."""

    def claimed(self, result: str, tasks: int) -> None:
        """An answer to a claim: ok, refused or unanswered; with how many tasks."""

    def running(self, count: int) -> None:
        """How many tasks a worker works on now."""
