"""Reports the start and the completion of an attempt, with retries until the server answers or the token expires."""

from __future__ import annotations

import datetime
from typing import Any, Callable, Dict, Optional, Tuple

from ._call import CANCEL, Call, Caller, read, write
from ._clock import FIRST_PAUSE, MAX_PAUSE, Event, backoff, wait_any
from .errors import ConfigurationError, LubdubError, OutputError, may_retry, wait_of

MAX_COMPLETION = 256 << 10  # bytes; the limit of a completion


def stamp(seconds: float) -> str:
    """Formats a timestamp for the API."""
    return (
        datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def completion(body: Dict[str, Any]) -> bytes:
    """Encodes a completion, and checks that it can be sent."""
    try:
        written = write(body)
    except ConfigurationError as error:
        raise OutputError(f"the output cannot be sent: {error}") from None
    if len(written) > MAX_COMPLETION:
        raise OutputError(
            f"the output cannot be sent: the completion has {len(written)} bytes, and a server takes {MAX_COMPLETION}; put the output "
            "elsewhere and send where it is"
        )
    return written


def persist(
    caller: Caller,
    call: Call,
    expires: Optional[float],
    lease: float,
    cancel: Optional[Event] = None,
    instead: Optional[Callable[[], Optional[Dict[str, Any]]]] = None,
) -> Tuple[Dict[str, Any], float]:
    """Retries a call until it is answered, no token is valid any more, or cancel is set. Returns the answer and when the answered request
    was sent. Pauses are short compared with the lease: an attempt that is being completed is in no inventory, and two inventories without
    it after an outage would lose it. instead: makes the first try in another way; None: it did not. What cancels the context's calls ends
    the retries only: the server may have applied the request in flight."""
    most = min(MAX_PAUSE, max(FIRST_PAUSE, lease / 12))
    call.tries, call.cancel = 1, cancel
    tried = 0
    while True:
        sent = caller.clock.now()
        try:
            answer = instead() if instead is not None and tried == 0 else None
            return (read(caller.make(call)) if answer is None else answer), sent
        except LubdubError as error:
            if not may_retry(error) or (cancel is not None and cancel.is_set()):
                raise
            pause = wait_of(error) + backoff(tried, most)
            if expires is not None and caller.clock.now() + pause > expires:
                raise
            if wait_any(pause, caller.closing, cancel, CANCEL.get()):
                raise
        tried += 1
