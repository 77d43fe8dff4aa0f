"""How a handler reports the kind of a failure."""

from __future__ import annotations

import traceback
from typing import Any, Dict, Literal, Optional, Union

from ._clock import Delay, milliseconds
from .ends import Cancelled, End, Stopping, Stuck, TaskTimeout
from .errors import LubdubError

Category = Literal["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"]

CATEGORIES = ("USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED")
MAX_STACK = 16 << 10  # bytes of a stack and of a message that are sent


class Failure(LubdubError):
    """A failure with a category.

    message: its text, or the error that it reports; a Failure passes on what is not given here.
    category: None: that of the error, else USER_CODE.
    retryable: whether another attempt may help; None: the category decides.
    retry_after: how long the next attempt waits, if the retry policy allows one: a timedelta, or seconds, at most 366 days; None: the
    backoff of the policy.
    """

    def __init__(
        self,
        message: Union[BaseException, str],
        category: Optional[Category] = None,
        retryable: Optional[bool] = None,
        retry_after: Optional[Delay] = None,
    ) -> None:
        if category is not None and category not in CATEGORIES:
            raise ValueError(f"unknown category {category!r}; use one of {', '.join(CATEGORIES)}")
        super().__init__(text_of(message))
        self.category: Category = category or category_of(message)
        self.retryable = message.retryable if retryable is None and isinstance(message, Failure) else retryable
        inner = message.retry_after_ms if isinstance(message, Failure) else None
        self.retry_after_ms = inner if retry_after is None else milliseconds(retry_after)
        if isinstance(message, BaseException):
            self.__cause__ = message


class RetryAfter(Failure):
    """A failure whose next attempt, if the retry policy allows one, waits for this time: a timedelta, or seconds."""

    def __init__(self, delay: Delay, error: Union[BaseException, str]) -> None:
        super().__init__(error, retryable=True)
        self.retry_after_ms = milliseconds(delay)


class Permanent(Failure):
    """A failure that another attempt cannot help: the task is not retried."""

    def __init__(self, error: Union[BaseException, str]) -> None:
        super().__init__(error, retryable=False)


class Snooze(LubdubError):
    """Raised by a handler that cannot do its work yet. The task returns to its queue, and its next attempt starts after this time: a
    timedelta, or seconds, at most 366 days. The attempt does not count against the retry policy."""

    def __init__(self, delay: Delay) -> None:
        self.delay_ms = milliseconds(delay)
        super().__init__(f"snoozed for {self.delay_ms / 1000:g} s")


class Stopped(LubdubError):
    """Raised by a handler after a cancel, with the phase that was interrupted and the partial progress, as any JSON value."""

    def __init__(self, phase: str = "", partial: Any = None) -> None:
        super().__init__(f"stopped in {phase}" if phase else "stopped")
        self.phase, self.partial = phase, partial


def cut(text: str, limit: int) -> str:
    """Shortens a text to a number of bytes in UTF-8, between characters. Invalid text, such as half a surrogate pair, is replaced."""
    raw = text.encode("utf-8", "replace")
    return raw[:limit].decode("utf-8", "ignore")


def task_error(error: BaseException) -> Dict[str, Any]:
    """The error in a completion."""
    report: Dict[str, Any] = {"category": category_of(error), "message": cut(text_of(error), MAX_STACK)}
    if isinstance(error, Failure):
        given = {"retryable": error.retryable, "retryAfterMs": error.retry_after_ms}
        report.update({name: value for name, value in given.items() if value is not None})
    if error.__traceback__ is not None or error.__cause__ is not None:
        stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        report["stackTrace"] = tail(stack, MAX_STACK)
    return report


def text_of(error: Union[BaseException, str]) -> str:
    """What an error says, with its type unless it is one of Lubdub's."""
    if not isinstance(error, BaseException):
        return str(error)
    name, text = type(error).__name__, str(error)
    return text if text and isinstance(error, LubdubError) else f"{name}: {text}" if text else name


def tail(text: str, limit: int) -> str:
    """The last bytes of a text, between characters: a Python stack ends where the error was raised."""
    raw = text.encode("utf-8", "replace")
    return raw[max(0, len(raw) - limit) :].decode("utf-8", "ignore")


def category_of(error: Union[BaseException, str]) -> Category:
    """The category of an error."""
    if isinstance(error, Failure):
        return error.category
    if isinstance(error, (TaskTimeout, Stuck)):
        return "TIMEOUT"
    if isinstance(error, Stopping):
        return "INFRASTRUCTURE"
    return "USER_CODE"


def explained(cause: Optional[End], error: BaseException) -> BaseException:
    """The failure to report for an error that was caused by the end of the attempt."""
    if cause is None or cause is error or isinstance(error, (Failure, Stopped, Snooze, Cancelled)):
        return error
    if isinstance(cause, TaskTimeout):
        failure = Failure(f"{cause}: {error}", category_of(cause))
        failure.__traceback__ = error.__traceback__
        return failure
    return error
