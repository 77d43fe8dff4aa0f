"""The event stream."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, Iterator, List, Optional, cast

from . import types as t
from ._call import Call, Caller, body_of, query_of, url_of
from ._clock import MAX_PAUSE, Event, backoff
from ._http import Stream
from .errors import AnswerError, ApiError, LubdubError, NoAnswer, may_retry, wait_of

QUIET = 45.0  # seconds; three times the server's keepalive interval
MOST = 4 << 20  # bytes; the limit of one message


class EventsMissing(LubdubError):
    """The stream has a gap, since older events are no longer stored. Continue to iterate: it resumes after the gap."""

    def __init__(self, gap: Dict[str, Any]) -> None:
        super().__init__(f"events between {gap.get('from')} and {gap.get('to')} are no longer stored")
        self.gap = gap


class EventStream(Iterator[t.Event]):
    """An event stream for one thread. It reconnects where it left off: lost connections, server restarts and a slow reader are not errors.
    Close it, from any thread, to end it."""

    def __init__(self, caller: Caller, query: Dict[str, Any]) -> None:
        self._caller, self._query, self.clock = caller, query, caller.clock
        self._closed = Event(caller.clock)
        self._forget = caller.closing.then(self._closed.set)
        self._reading = threading.Lock()  # held by the reading thread
        self._stream: Optional[Stream] = None
        self._at = 0
        self._pause = 0.0
        self._failures = 0
        # The position in the stream. Another stream with after= set to it continues after the last event that was returned. Store it if
        # events must not be missed across restarts. "" before the first answer.
        self.cursor = ""

    def __iter__(self) -> "EventStream":
        return self

    def __enter__(self) -> "EventStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream."""
        self._closed.set()
        self._forget()
        self._drop()

    def _drop(self) -> None:
        """Closes the connection of a closed stream. If a thread is reading, that thread does it."""
        if self._closed.is_set() and self._reading.acquire(blocking=False):
            try:
                self._end(None)
            finally:
                self._reading.release()

    def __next__(self) -> t.Event:
        try:
            with self._reading:
                return self._next()
        finally:
            self._drop()

    def _next(self) -> t.Event:
        while not self._closed.is_set():
            failure: Optional[LubdubError] = None
            try:
                stream = self._stream or self._open()
                event = self._listen(stream)
                if event is not None:
                    self._failures = 0
                    return event
                pause = self._pause  # the server closed the stream and sent a reconnection time
            except LubdubError as error:
                failure = error
                if isinstance(error, EventsMissing) or not may_retry(error):
                    self._end(error)
                    raise
                pause = wait_of(error) + backoff(self._failures, MAX_PAUSE)
                self._failures += 1
            self._end(failure)
            self._closed.wait(pause)
        self._end(None)
        raise StopIteration

    def _end(self, failure: Optional[LubdubError]) -> None:
        if isinstance(failure, EventsMissing):
            return  # the stream continues
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if failure is not None and may_retry(failure):
            self._caller.endpoints.failed(self._at)

    def _open(self) -> Stream:
        token = self._caller.token.current()
        try:
            return self._open_with(token)
        except ApiError as error:
            other = self._caller.token.renew(token) if error.status == 401 else token
            if other == token:
                raise
        return self._open_with(other)

    def _open_with(self, token: str) -> Stream:
        caller = self._caller
        query = dict(self._query)
        if self.cursor:
            query.pop("after", None)
        call = Call("GET", "/v1/events", query=query_of(query))
        base, self._at = caller.endpoints.first()
        headers = caller.headers(call, token, base, caller.endpoints, "text/event-stream")
        if self.cursor:
            headers["Last-Event-ID"] = self.cursor
        found = caller.transport.stream(url_of(base, call), headers, caller.timeout, self._closed)
        if found.status != 200:
            body_of(call, found)
            raise AnswerError(f"GET /v1/events: status {found.status}")
        self._stream = found
        return found

    def _listen(self, stream: Stream) -> Optional[t.Event]:
        """Reads the next event; None: the server closed the stream."""
        message: Dict[str, str] = {}
        data: List[str] = []
        size = 0
        while True:
            line = stream.line(QUIET)
            size += len(line)
            if size > MOST:
                raise AnswerError(f"GET /v1/events: a message is longer than {MOST >> 20} MiB")
            if not line.endswith(b"\n"):
                raise NoAnswer("GET /v1/events: the stream was interrupted")
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text:
                name, _, value = text.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "data":
                    data.append(value)
                else:
                    message[name] = value
                continue
            if message.get("retry", "").isdigit():
                self._pause = min(int(message["retry"]) / 1000, 3600)
            self.cursor = message.get("id", self.cursor)
            kind, content = message.get("event", "message"), "\n".join(data)
            message, data, size = {}, [], 0
            if kind in ("lagged", "end"):
                return None
            if content and kind in ("message", "gap"):
                event = _read(content)
                if kind == "gap":
                    raise EventsMissing(event)
                return cast(t.Event, event)


def _read(data: str) -> Dict[str, Any]:
    try:
        event: Any = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise AnswerError("GET /v1/events: a message is not a JSON object")
    return cast(Dict[str, Any], event)
