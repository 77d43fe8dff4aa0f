"""Why an attempt is over before its handler: what Task.check raises and Task.cause returns."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .errors import ApiError, LubdubError


class End(LubdubError):
    """One of the classes below. After Cancelled the attempt is still ours and needs a completion; after the others nothing more is sent."""


class Cancelled(End):
    """Cancellation was requested: stop, clean up, and complete. A handler may also raise one with its own reason, to cancel its task."""

    def __init__(self, reason: str = "") -> None:
        super().__init__("the task is cancelled" + (f": {reason}" if reason else ""))
        self.reason = reason


class Lost(End):
    """The attempt is no longer ours. State is the state of the task, if known."""

    def __init__(self, state: str = "", reason: str = "") -> None:
        super().__init__(f"the attempt is no longer ours: {state} {reason}".rstrip(": "))
        self.state, self.reason = state, reason


class Superseded(End):
    """A newer attempt took its place; by is its number, or 0 if unknown."""

    def __init__(self, by: int = 0) -> None:
        super().__init__(f"attempt {by} took this one's place" if by else "a newer attempt took this one's place")
        self.by = by


class Expired(End):
    """Lubdub ended the attempt, for a reason such as HEARTBEAT_TIMEOUT."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"the attempt was ended: {reason}".rstrip(": "))
        self.reason = reason


class DeadlineExceeded(End):
    """The task's deadline has passed."""

    def __init__(self) -> None:
        super().__init__("the task's deadline has passed")


class LeaseEnded(End):
    """No heartbeat was accepted for the heartbeat timeout, with lease="strict" only."""

    def __init__(self, silent: float = 0) -> None:
        super().__init__(f"no heartbeat was accepted for {silent:.3f} s; the lease has expired")
        self.silent = silent


class Stopping(End):
    """The worker stops, and the time for this handler is over."""

    def __init__(self) -> None:
        super().__init__("the worker stops")


class TaskTimeout(End):
    """The task took longer than the worker's task_timeout."""

    def __init__(self) -> None:
        super().__init__("the task reached its time limit")


class Stuck(End):
    """The task reported no progress for as long as the watchdog allows; it has already failed."""

    def __init__(self, quiet: float = 0) -> None:
        super().__init__(f"no progress for {quiet:g} s")
        self.quiet = quiet


class ClientClosed(End):
    """The client was closed while the attempt was running."""

    def __init__(self) -> None:
        super().__init__("the client is closed")


def end_of(code: str, fields: Mapping[str, Any]) -> Optional[End]:
    """The end that a refusal means; None: it does not end the attempt."""
    reason, state = str(fields.get("reason") or ""), str(fields.get("state") or "")
    if code == "attempt_mismatch":
        by = fields.get("expectedAttempt")
        return Superseded(by if isinstance(by, int) else 0)
    if code not in ("task_already_terminal", "task_expired"):
        return None
    if reason == "DEADLINE_EXCEEDED":
        return DeadlineExceeded()
    return Lost(state, reason) if code == "task_already_terminal" else Expired(reason)


def end_of_error(error: BaseException) -> Optional[End]:
    """end_of for an error of a call."""
    return end_of(error.code, error.fields) if isinstance(error, ApiError) else None
