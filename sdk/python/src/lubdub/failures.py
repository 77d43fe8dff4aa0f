"""How a handler reports the kind of a failure."""

from __future__ import annotations

import traceback
from typing import Any, Dict, Literal, Optional

from .ends import Cancelled, End, Stopping, Stuck, TaskTimeout
from .errors import LubdubError

Category = Literal["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"]

CATEGORIES = ("USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED")
MAX_STACK = 16 << 10  # bytes of a stack and of a message that are sent


class Failure(LubdubError):
    """A failure with a category. retryable: whether another attempt may help; None: the category decides."""

    def __init__(self, message: str, category: Category = "USER_CODE", retryable: Optional[bool] = None) -> None:
        if category not in CATEGORIES:
            raise ValueError(f"unknown category {category!r}; use one of {', '.join(CATEGORIES)}")
        super().__init__(message)
        self.category: Category = category
        self.retryable = retryable


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
    failure = error if isinstance(error, Failure) else None
    message = str(error) or type(error).__name__
    if failure is None and not isinstance(error, LubdubError):
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    report: Dict[str, Any] = {
        "category": failure.category if failure else category_of(error),
        "message": cut(message, MAX_STACK),
    }
    if failure is not None and failure.retryable is not None:
        report["retryable"] = failure.retryable
    if error.__traceback__ is not None:
        stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        report["stackTrace"] = tail(stack, MAX_STACK)
    return report


def tail(text: str, limit: int) -> str:
    """The last bytes of a text, between characters: a Python stack ends where the error was raised."""
    raw = text.encode("utf-8", "replace")
    return raw[max(0, len(raw) - limit) :].decode("utf-8", "ignore")


def category_of(error: BaseException) -> Category:
    """The category of an error that does not set one."""
    if isinstance(error, (TaskTimeout, Stuck)):
        return "TIMEOUT"
    if isinstance(error, Stopping):
        return "INFRASTRUCTURE"
    return "USER_CODE"


def explained(cause: Optional[End], error: BaseException) -> BaseException:
    """The failure to report for an error that was caused by the end of the attempt."""
    if cause is None or cause is error or isinstance(error, (Failure, Stopped, Cancelled)):
        return error
    if isinstance(cause, TaskTimeout):
        failure = Failure(f"{cause}: {error}", category_of(cause))
        failure.__traceback__ = error.__traceback__
        return failure
    return error
