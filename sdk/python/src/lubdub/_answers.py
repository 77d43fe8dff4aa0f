"""Reads fields of answers defensively: a proxy may have written the answer."""

from __future__ import annotations

import datetime
from typing import Any, Dict, List, Mapping, cast

from .errors import AnswerError

LONGEST = 7 * 86_400.0  # seconds; longer than any time that a server sends
SHORTEST = 0.01  # seconds between two heartbeats


def seconds(value: Any) -> float:
    """Converts milliseconds to seconds; 0 if the value is not a plausible duration."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST * 1000:
        return 0.0
    return float(value) / 1000


def interval_of(value: Any, timeout: float, known: float) -> float:
    """The interval in an answer, shortened so that one lost heartbeat does not end the attempt; the known one if the answer has none."""
    given = seconds(value)
    return max(SHORTEST, min(given, timeout / 2) if timeout > 0 else given) if given > 0 else known


def timeout_of(value: Any, known: float) -> float:
    """The timeout in an answer; the known one if the answer has none."""
    given = seconds(value)
    return given if given >= 2 * SHORTEST else known


def objects(value: Any) -> List[Dict[str, Any]]:
    """The objects in a list; other items are dropped."""
    return [x for x in cast(List[Any], value) if isinstance(x, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A string; "" if the value is not one."""
    return value if isinstance(value, str) else ""


def plain(value: Any) -> str:
    """A string of printable ASCII, as ids and tokens are; "" if the value is not one."""
    found = text(value)
    return found if all("!" <= c <= "~" for c in found) else ""


def whole(value: Any) -> int:
    """A non-negative integer; 0 if the value is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def envelopes(answer: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The tasks in the answer to a claim."""
    tasks: Any = answer.get("tasks")
    found = objects(tasks)
    for one in found:
        if not (plain(one.get("taskId")) and plain(one.get("taskToken")) and whole(one.get("attempt")) > 0):
            raise AnswerError("a claimed task has no taskId, attempt or taskToken")
    if tasks is not None and (not isinstance(tasks, list) or len(found) != len(cast(List[Any], tasks))):
        raise AnswerError("the claimed tasks are not a list of tasks")
    return found


def seconds_between(earlier: Any, later: Any) -> float:
    """The seconds between two timestamps; 0 if one of them is invalid."""
    try:
        return max(0.0, seconds_of(later) - seconds_of(earlier))
    except (TypeError, ValueError, OverflowError, OSError):
        return 0.0


def seconds_of(time: Any) -> float:
    """Parses a timestamp of the API into seconds since 1970."""
    return datetime.datetime.fromisoformat(str(time).replace("Z", "+00:00")).timestamp()
