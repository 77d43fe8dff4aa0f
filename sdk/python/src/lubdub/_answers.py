"""What answers say, read with care: whoever stands between may have written them."""

from __future__ import annotations

import datetime
from typing import Any, Dict, List, Mapping, cast

from .errors import AnswerError

LONGEST = 7 * 86_400.0  # seconds: more than any time that a server tells
SHORTEST = 0.01  # seconds between two beats


def seconds(value: Any) -> float:
    """Milliseconds as seconds; 0 where they are none that can be meant."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST * 1000:
        return 0.0
    return float(value) / 1000


def interval_of(value: Any, timeout: float, known: float) -> float:
    """The interval that an answer tells, in time for one beat that is lost on the way; where it tells none, the one known."""
    told = seconds(value)
    return max(SHORTEST, min(told, timeout / 2) if timeout > 0 else told) if told > 0 else known


def timeout_of(value: Any, known: float) -> float:
    """The timeout that an answer tells; where it tells none, the one known."""
    told = seconds(value)
    return told if told >= 2 * SHORTEST else known


def objects(value: Any) -> List[Dict[str, Any]]:
    """The objects of a list."""
    return [x for x in cast(List[Any], value) if isinstance(x, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text; "" where it is none."""
    return value if isinstance(value, str) else ""


def plain(value: Any) -> str:
    """A text of printable ASCII, as ids and tokens are; "" where it is none."""
    found = text(value)
    return found if all("!" <= c <= "~" for c in found) else ""


def whole(value: Any) -> int:
    """A number that counts; 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def envelopes(answer: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The tasks that a claim brought."""
    said: Any = answer.get("tasks")
    found = objects(said)
    for one in found:
        if not (plain(one.get("taskId")) and plain(one.get("taskToken")) and whole(one.get("attempt")) > 0):
            raise AnswerError("a task that was claimed has no taskId, attempt or taskToken")
    if said is not None and (not isinstance(said, list) or len(found) != len(cast(List[Any], said))):
        raise AnswerError("the tasks that were claimed are not a list of tasks")
    return found


def seconds_between(earlier: Any, later: Any) -> float:
    """The seconds between two times of the contract; 0 where one of them is none."""
    try:
        return max(0.0, seconds_of(later) - seconds_of(earlier))
    except (TypeError, ValueError, OverflowError, OSError):
        return 0.0


def seconds_of(time: Any) -> float:
    """Reads a time of the contract, as seconds since 1970."""
    return datetime.datetime.fromisoformat(str(time).replace("Z", "+00:00")).timestamp()
