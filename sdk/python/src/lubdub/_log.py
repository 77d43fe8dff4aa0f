"""Logging, and where it goes while the program has not configured any."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any, Dict, Mapping, Optional

from ._clock import Clock
from .errors import LubdubError
from .failures import task_error


class LastResort(logging.Handler):
    """Writes to standard error while no other handler gets the record, so that lines are neither lost nor duplicated."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if configured(record.name) or sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
            return
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def configured(name: str) -> bool:
    """Whether the program has configured a handler for a logger."""
    logger: Optional[logging.Logger] = logging.getLogger(name)
    while logger is not None:
        if any(not isinstance(handler, LastResort) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def show_info() -> None:
    """Shows info lines too if the program has not configured logging: a worker is a separate program."""
    if LOG.level == logging.NOTSET and not configured("lubdub.worker"):
        LOG.setLevel(logging.INFO)


LOG = logging.getLogger("lubdub")
LOG.addHandler(LastResort())


RECENT = 10.0  # seconds; failing calls are retried more often than this


class Outage:
    """Logs one line when calls begin to fail because no server answers, and one when all of them are answered again."""

    def __init__(self, clock: Clock, log: logging.Logger) -> None:
        self.clock, self.log = clock, log
        self.lock = threading.Lock()
        self.failing: Dict[str, float] = {}  # kinds of calls, with the time of their last failure
        self.since = 0.0

    def failed(self, what: str, error: object) -> None:
        """A call of this kind was not answered and will be retried."""
        with self.lock:
            first, now = not self.failing, self.clock.now()
            self.failing[what] = now
            if first:
                self.since = now
        if first:
            self.log.warning("No answer from Lubdub; calls are retried: %s", error)
        else:
            self.log.debug("Still no answer: %s", error)

    def answered(self, what: str) -> None:
        """A call of this kind was answered. Other kinds that have not failed recently are waiting for an answer, as claims do."""
        if not self.failing:
            return
        with self.lock:
            now, failing = self.clock.now(), bool(self.failing)
            self.failing = {kind: at for kind, at in self.failing.items() if kind != what and now - at < RECENT}
            over = failing and not self.failing
        if over:
            self.log.warning("Lubdub answers again after %.1f s", now - self.since)

    def dropped(self, what: str) -> None:
        """A call of this kind is no longer retried, though it was not answered."""
        with self.lock:
            self.failing.pop(what, None)


def of_type(envelope: Mapping[str, Any]) -> str:
    """Names the type of a task, after its id."""
    return f" of type {envelope['type']}" if envelope.get("type") else ""


def log_failure(
    log: logging.Logger, envelope: Mapping[str, Any], error: BaseException, then: str, retried: bool = False
) -> None:
    """Logs that a handler failed, with the stack unless the error is one of Lubdub's."""
    log.log(
        logging.WARNING if retried else logging.ERROR,
        "Task %s%s, attempt %s, failed: %s; %s",
        envelope.get("taskId"),
        of_type(envelope),
        envelope.get("attempt"),
        task_error(error)["message"],
        then,
        exc_info=None if isinstance(error, LubdubError) or error.__traceback__ is None else error,
    )


def retry_of(answer: Mapping[str, Any]) -> str:
    """Describes the next attempt, from the answer to a completion."""
    if not answer.get("willRetry"):
        return "it will not be retried"
    return (
        f"it will be retried as attempt {answer['nextAttempt']}" if answer.get("nextAttempt") else "it will be retried"
    )
