"""What is logged, and where to while the program has configured no logging."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any, Dict, Mapping, Optional

from ._clock import Clock
from .errors import LubdubError
from .failures import task_error


class LastResort(logging.Handler):
    """Writes to standard error while no other handler would get the record: lines are neither lost nor doubled."""

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
    """Whether the program has a handler for records of a logger."""
    logger: Optional[logging.Logger] = logging.getLogger(name)
    while logger is not None:
        if any(not isinstance(handler, LastResort) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def show_info() -> None:
    """Has info lines written too, where the program has configured no logging: a worker is a program of its own."""
    if LOG.level == logging.NOTSET and not configured("lubdub.worker"):
        LOG.setLevel(logging.INFO)


LOG = logging.getLogger("lubdub")
LOG.addHandler(LastResort())


RECENT = 10.0  # seconds: calls that fail are repeated more often


class Outage:
    """Logs one line when calls begin to fail because no server answers, and one when all that failed are answered again."""

    def __init__(self, clock: Clock, log: logging.Logger) -> None:
        self.clock, self.log = clock, log
        self.lock = threading.Lock()
        self.failing: Dict[str, float] = {}  # kinds of calls, with the time of their last failure
        self.since = 0.0

    def failed(self, what: str, error: object) -> None:
        """A call of this kind was not answered, and is repeated."""
        with self.lock:
            first, now = not self.failing, self.clock.now()
            self.failing[what] = now
            if first:
                self.since = now
        if first:
            self.log.warning("No answer from Lubdub, and calls are repeated: %s", error)
        else:
            self.log.debug("Still no answer: %s", error)

    def answered(self, what: str) -> None:
        """A call of this kind was answered. Others that have not failed for a while wait for their answer, as claims do."""
        if not self.failing:
            return
        with self.lock:
            now, failing = self.clock.now(), bool(self.failing)
            self.failing = {kind: at for kind, at in self.failing.items() if kind != what and now - at < RECENT}
            over = failing and not self.failing
        if over:
            self.log.warning("Lubdub answers again, after %.1f s", now - self.since)

    def dropped(self, what: str) -> None:
        """A call of this kind is repeated no more, though it was not answered."""
        with self.lock:
            self.failing.pop(what, None)


def log_failure(
    log: logging.Logger, envelope: Mapping[str, Any], error: BaseException, then: str, retried: bool = False
) -> None:
    """Logs that a handler has failed, with its stack where the error is not one that it raised for Lubdub."""
    of_type = f" of type {envelope['type']}" if envelope.get("type") else ""
    log.log(
        logging.WARNING if retried else logging.ERROR,
        "Task %s%s, attempt %s, failed: %s; %s",
        envelope.get("taskId"),
        of_type,
        envelope.get("attempt"),
        task_error(error)["message"],
        then,
        exc_info=None if isinstance(error, LubdubError) or error.__traceback__ is None else error,
    )


def retry_of(answer: Mapping[str, Any]) -> str:
    """What a completion's answer says about another attempt, in words."""
    if not answer.get("willRetry"):
        return "it is not retried"
    return f"it is retried as attempt {answer['nextAttempt']}" if answer.get("nextAttempt") else "it is retried"
