"""Makes calls: chooses the address and the token, and retries where that can help."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import json
from typing import Any, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, cast
import urllib.parse

from ._clock import MAX_PAUSE, Clock, Event, backoff, wait_any
from ._http import Response, Transport
from ._endpoints import Endpoints, Token, check_plain_http_url
from .errors import (
    AnswerError,
    ApiError,
    ClosedError,
    ConfigurationError,
    LubdubError,
    NoAnswer,
    NotSent,
    may_retry,
    refusal,
    wait_of,
)

# What cancels the calls that are made in this context, unless they name another event.
CANCEL: "contextvars.ContextVar[Optional[Event]]" = contextvars.ContextVar("lubdub-cancel", default=None)


@contextlib.contextmanager
def cancelled_by(cancel: Optional[Event]) -> Generator[None, None, None]:
    """Lets an event cancel the calls that the block makes; None: nothing does."""
    before = CANCEL.set(cancel)
    try:
        yield
    finally:
        CANCEL.reset(before)


class Call:
    """One call, including its retries."""

    def __init__(
        self,
        method: str,
        path: str,
        *,
        body: Optional[bytes] = None,
        query: str = "",
        endpoints: Optional[Endpoints] = None,
        token: Optional[str] = None,
        opened: bool = True,
        key: Optional[str] = None,
        trace: Optional[str] = None,
        once: bool = False,
        waits: float = 0,
        limit: float = 0,
        tries: int = 0,
        cancel: Optional[Event] = None,
    ) -> None:
        self.method, self.path, self.body, self.query = method, path, body, query
        self.endpoints = endpoints  # None: the client's endpoints
        self.token = token  # the token to send; None: the client's own
        self.opened = opened  # False: send no token
        self.key, self.trace = key, trace
        self.once = once  # a repeat would apply it twice: it is retried only if the server cannot have received it
        self.waits = waits  # seconds that the server may take in addition
        self.limit = limit  # seconds that one answer may take; 0: the client's setting
        self.tries = tries  # the maximum number of tries; 0: the client's setting
        self.cancel = cancel if cancel is not None else CANCEL.get()  # cancels the call

    @property
    def operation(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"

    def may_repeat(self, error: LubdubError) -> bool:
        """Whether the call may be retried after an error."""
        if not may_retry(error):
            return False
        received = not (isinstance(error, NotSent) or (isinstance(error, ApiError) and error.status == 429))
        return not (self.once and received)


class Caller:
    """Makes calls to one deployment. Any number of threads may use it."""

    def __init__(
        self,
        endpoints: Endpoints,
        token: Token,
        transport: Transport,
        clock: Clock,
        agent: str,
        timeout: float,
        tries: int,
    ) -> None:
        self.endpoints, self.token, self.transport, self.clock = endpoints, token, transport, clock
        self.agent, self.timeout, self.tries = agent, timeout, tries
        self.closing = Event(clock)

    def make(self, call: Call) -> bytes:
        """Makes a call with retries and returns the body of the answer."""
        tries = call.tries or self.tries
        tried = 0
        while True:
            try:
                return self.attempt(call)
            except LubdubError as error:
                if tried + 1 >= tries or not call.may_repeat(error) or self.over(call):
                    raise
                pause = wait_of(error) + backoff(tried, MAX_PAUSE)
                if wait_any(pause, self.closing, call.cancel):
                    raise
            tried += 1

    def over(self, call: Call) -> bool:
        """Whether the call was cancelled or the client closed."""
        return call.cancel is not None and call.cancel.is_set()

    def attempt(self, call: Call) -> bytes:
        """Makes a call once, and a second time with a new token if the client's own was refused."""
        if self.closing.is_set():
            raise ClosedError("the client is closed")
        if not call.opened or call.token is not None:
            return self.send(call, call.token or "")
        token = self.token.current()
        try:
            return self.send(call, token)
        except ApiError as error:
            if error.status != 401:
                raise
            other = self.token.renew(token)
            if other == token:
                raise
        return self.send(call, other)

    def send(self, call: Call, token: str) -> bytes:
        """Makes one request."""
        endpoints = call.endpoints or self.endpoints
        base, at = endpoints.first()
        limit = (call.limit or self.timeout) + call.waits
        try:
            answer = self.transport.send(
                call.method,
                url_of(base, call),
                self.headers(call, token, base, endpoints),
                call.body,
                limit,
                call.cancel,
            )
            return body_of(call, answer)
        except LubdubError as error:
            if may_retry(error) and not self.over(call):
                endpoints.failed(at)
            raise

    def headers(
        self, call: Call, token: str, base: str, endpoints: Endpoints, accept: str = "application/json"
    ) -> Dict[str, str]:
        """The headers of a request."""
        headers = {"User-Agent": self.agent, "Accept": accept}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if token:
            check_plain_http_url(base, endpoints.allow_http)
            headers["Authorization"] = "Bearer " + token
        if call.key:
            headers["Idempotency-Key"] = call.key
        if call.trace:
            headers["Traceparent"] = call.trace
        return headers


def url_of(base: str, call: Call) -> str:
    """The URL of a call."""
    return base + call.path + (f"?{call.query}" if call.query else "")


def body_of(call: Call, answer: Response) -> bytes:
    """The body of an answer. An answer other than 2xx is raised as an error."""
    if answer.status // 100 != 2:
        raise refusal(call.operation, answer.status, answer.headers, answer.body)
    return answer.body


def read(body: bytes) -> Any:
    """Parses an answer that must be an object."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the answer is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise AnswerError("the answer is not a JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]


def write(value: Any) -> bytes:
    """Encodes a body."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=fields_of).encode(
            "utf-8"
        )
    except (AttributeError, TypeError, ValueError, RecursionError) as error:  # it contains half a surrogate pair
        raise ConfigurationError(f"the body is not JSON: {error}") from None


def fields_of(value: Any) -> Dict[str, Any]:
    """A dataclass as an object."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is neither JSON nor a dataclass")


def path_of(template: str, ids: "tuple[str, ...]") -> str:
    """Fills ids into a path. An empty id is refused, since it would name another path."""
    if any(not one for one in ids):
        raise ConfigurationError(f"an id in {template} is empty")
    return template.format(*(urllib.parse.quote(one, safe="") for one in ids))


def query_of(values: Mapping[str, Any]) -> str:
    """Encodes a query: None is omitted, lists are joined with commas, and labels are repeated."""
    pairs: List[Tuple[str, str]] = []
    for name, value in values.items():
        if value is None or value == []:
            continue
        if name == "label":
            pairs += [(name, str(one)) for one in value]
        elif isinstance(value, (list, tuple)):
            pairs.append((name, ",".join(str(one) for one in cast(Sequence[Any], value))))
        elif isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        else:
            pairs.append((name, str(value)))
    return urllib.parse.urlencode(pairs)


__all__ = [
    "CANCEL",
    "Call",
    "Caller",
    "NoAnswer",
    "body_of",
    "cancelled_by",
    "path_of",
    "query_of",
    "read",
    "url_of",
    "write",
]
