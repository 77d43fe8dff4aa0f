"""The HTTP transport: a connection pool over http.client."""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import os
import select
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, cast

from . import _exit, _fork
from ._clock import Event
from .errors import AnswerError, NoAnswer, NotSent

MAX_ANSWER = 64 << 20  # bytes; the limit of an answer
MAX_IDLE = 64  # idle connections per host


class Response:
    """An answer. Header names are in lower case."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.status, self.headers, self.body = status, headers, body


class Stream(Response):
    """An answer whose body is read line by line."""

    def __init__(
        self, status: int, headers: Mapping[str, str], line: Callable[[float], bytes], close: Callable[[], None]
    ) -> None:
        super().__init__(status, headers)
        # Reads a line including its end; b"" is the end of the body. It raises NoAnswer after a number of seconds.
        self.line, self.close = line, close


class Transport:
    """Sends requests. Tests replace it."""

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Optional[bytes],
        limit: float,
        cancel: Optional[Event] = None,
    ) -> Response:
        """Makes one request. Raises NoAnswer after limit seconds, when the connection breaks, or when cancel is set."""
        raise NotImplementedError

    def stream(self, url: str, headers: Mapping[str, str], limit: float, cancel: Optional[Event] = None) -> Stream:
        """Makes a GET whose answer is read line by line; limit applies until the answer begins."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the idle connections."""


Address = Tuple[str, str, int]


class HttpTransport(Transport):
    """Sends requests over http and https. proxy: its URL; "": none; None: as the environment sets it."""

    def __init__(self, tls: Optional[ssl.SSLContext] = None, proxy: Optional[str] = None) -> None:
        self.tls, self.proxy = tls, proxy
        self.lock = threading.Lock()
        self.idle: Dict[Address, List[http.client.HTTPConnection]] = {}
        _fork.register(self)

    def after_fork(self) -> None:
        """Drops the parent's connections without closing them."""
        self.lock = threading.Lock()
        idle, self.idle = self.idle, {}
        for connections in idle.values():
            for connection in connections:
                if connection.sock is not None:
                    os.close(connection.sock.detach())  # without notifying the other side

    def close(self) -> None:
        with self.lock:
            idle, self.idle = self.idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Optional[bytes],
        limit: float,
        cancel: Optional[Event] = None,
    ) -> Response:
        until = time.monotonic() + limit
        connection, at, answer, undo = self._ask(method, url, headers, body, until, cancel)
        try:
            whole = _read(answer)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise _broken(method, url, error, limit, cancel) from None
        except BaseException:
            connection.close()
            raise
        finally:
            undo()
        if answer.will_close or (cancel is not None and cancel.is_set()):
            connection.close()
        else:
            self._keep(at, connection)
        return Response(answer.status, _headers(answer), whole)

    def stream(self, url: str, headers: Mapping[str, str], limit: float, cancel: Optional[Event] = None) -> Stream:
        until = time.monotonic() + limit
        connection, _, answer, undo = self._ask("GET", url, headers, None, until, cancel)

        def line(seconds: float) -> bytes:
            try:
                answer.socket.until = time.monotonic() + seconds
                return answer.readline(4 << 20)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise _broken("GET", url, error, seconds, cancel) from None

        def close() -> None:
            undo()
            answer.close()
            connection.close()

        found = Stream(answer.status, _headers(answer), line, close)
        if answer.status != 200:
            try:
                found.body = _read(answer)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise _broken("GET", url, error, limit, cancel) from None
            finally:
                close()
        return found

    def _ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Optional[bytes],
        until: float,
        cancel: Optional[Event],
    ) -> Tuple[http.client.HTTPConnection, Address, "_Answer", Callable[[], None]]:
        """Sends a request and reads the beginning of its answer. The last returned value is a function that stops watching cancel and the
        end of the process."""
        limit = max(0.001, until - time.monotonic())
        connection, at, target, extra = self._connection(url, limit)
        undo = contextlib.ExitStack()
        undo.callback(_exit.blocked(lambda: _shut(connection)))
        sent = False

        def respond(of: socket.socket, **named: Any) -> _Answer:
            return _Answer(of, until, **named)

        try:
            connection.response_class = cast(Any, respond)
            if connection.sock is None:
                connection.timeout = limit
                connection.connect()
            if cancel is not None:
                undo.callback(cancel.then(lambda: _shut(connection)))
            _limit(connection, until)
            sent = True
            connection.request(method, target, body=body, headers={**headers, **extra})
            return connection, at, cast(_Answer, connection.getresponse()), undo.close
        except (OSError, http.client.HTTPException) as error:
            undo.close()
            connection.close()
            broken = _broken(method, url, error, limit, cancel)
            raise broken if sent else NotSent(str(broken)) from None
        except BaseException:
            undo.close()
            connection.close()
            raise

    def _connection(self, url: str, limit: float) -> Tuple[http.client.HTTPConnection, Address, str, Dict[str, str]]:
        parts = urllib.parse.urlsplit(url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        proxy = self._proxy_for(parts.scheme, host)
        at = (
            parts.scheme + (" " + proxy if proxy else ""),
            host if secure or not proxy else "",
            port if secure or not proxy else 0,
        )
        extra: Dict[str, str] = {}
        if proxy and not secure:
            target, extra = url, _credentials(proxy)
        idle_connection = self._take_idle(at)
        if idle_connection is not None:
            return idle_connection, at, target, extra
        if not proxy:
            return self._new(secure, host, port, limit), at, target, extra
        gate = urllib.parse.urlsplit(proxy if "//" in proxy else "//" + proxy)
        connection = self._new(secure, gate.hostname or "", gate.port or 80, limit)
        if secure:
            connection.set_tunnel(host, port, _credentials(proxy))
        return connection, at, target, extra

    def _new(self, secure: bool, host: str, port: int, limit: float) -> http.client.HTTPConnection:
        if not secure:
            return http.client.HTTPConnection(host, port, timeout=limit)
        if self.tls is None:
            self.tls = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=limit, context=self.tls)

    def _proxy_for(self, scheme: str, host: str) -> str:
        if self.proxy is not None:
            return self.proxy
        found = urllib.request.getproxies().get(scheme, "")
        return "" if not found or urllib.request.proxy_bypass(host) else found

    def _take_idle(self, at: Address) -> Optional[http.client.HTTPConnection]:
        while True:
            with self.lock:
                idle = self.idle.get(at)
                if not idle:
                    return None
                connection = idle.pop()
            if connection.sock is not None and not _readable(connection.sock):
                return connection
            connection.close()  # the server has closed it

    def _keep(self, at: Address, connection: http.client.HTTPConnection) -> None:
        with self.lock:
            idle = self.idle.setdefault(at, [])
            if len(idle) < MAX_IDLE:
                idle.append(connection)
                return
        connection.close()


class _Patient(io.RawIOBase):
    """Reads from a socket until a deadline, however slowly data arrives."""

    def __init__(self, of: socket.socket, until: float) -> None:
        super().__init__()
        self.of, self.until, self.raw = of, until, of.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self.until - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self.of.settimeout(left)
        return self.raw.readinto(buffer)

    def close(self) -> None:
        self.raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer with a deadline."""

    def __init__(self, of: socket.socket, until: float, **named: Any) -> None:
        super().__init__(of, **named)
        self.fp.close()
        self.socket = _Patient(of, until)
        self.fp = io.BufferedReader(self.socket)


def _readable(of: socket.socket) -> bool:
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(of, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([of], [], [], 0)[0])
    except (OSError, ValueError):
        return True


def _shut(connection: http.client.HTTPConnection) -> None:
    try:
        if connection.sock is not None:
            # SSLSocket.shutdown would drop the TLS state, and with it an answer that has arrived already
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
    except OSError:
        pass


def _limit(connection: http.client.HTTPConnection, until: float) -> None:
    left = until - time.monotonic()
    if left <= 0:
        raise socket.timeout("timed out")
    if connection.sock is not None:
        connection.sock.settimeout(left)


def _read(answer: _Answer) -> bytes:
    """Reads the rest of an answer."""
    parts: List[bytes] = []
    size = 0
    while not answer.isclosed():
        part = answer.read1(1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER:
            raise AnswerError(f"the answer is longer than {MAX_ANSWER >> 20} MiB")
    if answer.length:  # http.client does not report an answer that was truncated in this way
        raise http.client.IncompleteRead(b"", answer.length)
    answer.close()  # frees the connection; up to Python 3.12 read1 does not
    return b"".join(parts)


def _headers(answer: http.client.HTTPResponse) -> Dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def _credentials(proxy: str) -> Dict[str, str]:
    gate = urllib.parse.urlsplit(proxy if "//" in proxy else "//" + proxy)
    if not gate.username:
        return {}
    pair = f"{urllib.parse.unquote(gate.username)}:{urllib.parse.unquote(gate.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _broken(method: str, url: str, error: Exception, limit: float, cancel: Optional[Event]) -> NoAnswer:
    _exit.check()
    operation = f"{method} {urllib.parse.urlsplit(url).path}"
    if cancel is not None and cancel.is_set():
        return NoAnswer(f"{operation}: cancelled")
    if isinstance(error, socket.timeout):
        return NoAnswer(f"{operation}: no answer within {limit:.3g} s")
    return NoAnswer(f"{operation}: {type(error).__name__}: {error}")
