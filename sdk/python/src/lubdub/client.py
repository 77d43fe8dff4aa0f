"""The client: all calls, events, and tracking of attempts."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union, cast

from . import _fork
from ._call import Call, Caller, path_of, query_of, read, write
from ._clock import Clock, Event
from ._creations import Creations
from ._events import EventStream
from ._tracking import AttemptGroup, Leases
from ._http import HttpTransport, Transport
from ._log import LOG, log_failure, retry_of
from ._pool import Pool
from ._results import Results, Timeout
from ._endpoints import Endpoints, token_of
from ._version import __version__
from .task import Task, Holder, Lease
from .ends import ClientClosed
from .errors import ApiError, ClosedError, ConfigurationError
from .metrics import Metrics
from .track import Tracking


class Client(Creations):
    """A client of one deployment, at url, or at several separated by commas or in a list; None: LUBDUB_URL. Any number of threads may use
    it. Creating it sends nothing.

    token, token_file, token_func: the token for control calls; by default LUBDUB_TOKEN, or the file LUBDUB_TOKEN_FILE. A file is read, and
    a function called, when a token is first needed, and again after a refusal.
    tenant_id, workspace_id: the scope of every call; by default the token's.
    user_agent: the name of the program, sent before the SDK's.
    allow_http: send tokens over http:// to other hosts. Anyone on the network path can read them.
    lease: what happens to tracked work while no server answers: "patient" (it continues until a server reports its end) or "strict" (it is
    stopped when no heartbeat was accepted for the heartbeat timeout; for effects that must never overlap).
    isolated: send heartbeats from a child process, for work that holds the GIL for seconds.
    isolated_limit: for how many seconds at most the child continues while this process is blocked.
    timeout: seconds that a server may take to answer. tries: the maximum number of tries of a call that may be repeated.
    ca_file: trust only the authorities in a PEM file; tls: an ssl.SSLContext instead.
    proxy: the URL of a proxy; "": none; None: as set by HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
    metrics: receives events to count. traceparent: called when tasks are created without a trace context, and returns the current
    one as a W3C traceparent; None, "" and an invalid one are ignored.
    """

    def __init__(
        self,
        url: Union[str, Sequence[str], None] = None,
        *,
        token: Optional[str] = None,
        token_file: Optional[str] = None,
        token_func: Optional[Callable[[], str]] = None,
        tenant_id: str = "",
        workspace_id: str = "",
        user_agent: str = "",
        allow_http: bool = False,
        lease: Lease = "patient",
        isolated: bool = False,
        isolated_limit: float = 600,
        timeout: float = 10,
        tries: int = 4,
        ca_file: Optional[str] = None,
        tls: Optional[ssl.SSLContext] = None,
        proxy: Optional[str] = None,
        metrics: Optional[Metrics] = None,
        traceparent: Optional[Callable[[], Optional[str]]] = None,
        logger: Optional[logging.Logger] = None,
        transport: Optional[Transport] = None,
        clock: Optional[Clock] = None,
    ) -> None:
        if lease not in ("patient", "strict"):
            raise ConfigurationError(f'unknown lease {lease!r}; use "patient" or "strict"')
        if not timeout > 0:
            raise ConfigurationError(f"a timeout of {timeout} s is too short; give a positive one")
        if tries < 1:
            raise ConfigurationError(f"{tries} tries are too few; 1 is the least")
        if url is None or url == "":
            url = os.environ.get("LUBDUB_URL", "")
        urls = url.split(",") if isinstance(url, str) else list(url)
        endpoints = Endpoints(urls, allow_http)
        opener = token_of(token, token_file, token_func)
        if opener:
            endpoints.check_plain_http()
        self._ca_file, self._proxy = ca_file, proxy
        if ca_file is not None and tls is None:
            tls = authorities(ca_file)
        self._scope = {"tenantId": tenant_id or None, "workspaceId": workspace_id or None}
        agent = f"{user_agent} " if user_agent else ""
        self.caller = Caller(
            endpoints,
            opener,
            transport or HttpTransport(tls, proxy),
            clock or Clock(),
            f"{agent}lubdub-python/{__version__}",
            timeout,
            tries,
        )
        self.lease: Lease = lease
        self.isolated, self.isolated_limit = isolated, isolated_limit
        self.metrics = metrics or Metrics()
        self.traceparent = traceparent
        self.log = logger or LOG
        self.leases = Leases(self.caller.clock)
        self._lock = threading.Lock()
        self._groups: Dict[str, AttemptGroup] = {}
        self._make_pools()
        self.results = Results(self.caller, self.post, self.log)
        if isolated:
            self.isolation()
        _fork.register(self)

    def __repr__(self) -> str:
        return f"<lubdub.Client {','.join(self.caller.endpoints.urls)}>"

    def after_fork(self) -> None:
        """Tracked attempts stay with the parent; the forked process opens its own connections."""
        self._lock = threading.Lock()
        self._groups = {}
        self.caller.closing = type(self.caller.closing)(self.caller.clock)
        self.leases = Leases(self.caller.clock)
        self._make_pools()
        self.results = Results(self.caller, self.post, self.log)

    def _make_pools(self) -> None:
        self.pool = Pool(self.caller.clock)
        self.tracking = Pool(self.caller.clock)  # separate, since completions are retried throughout an outage

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the heartbeats of attempts that are still tracked, whose cause becomes ClientClosed: the server will declare them lost.
        Calls that wait for a retry or for a result fail."""
        with self._lock:
            groups, self._groups = list(self._groups.values()), {}
        for group in groups:
            group.close(ClientClosed())
        self.caller.closing.set()
        self.results.close()
        for pool in (self.pool, self.tracking):
            pool.end()
        self.caller.transport.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        ids: Sequence[str] = (),
        body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        token: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        traceparent: Optional[str] = None,
        opened: bool = True,
        scoped: bool = False,
        once: bool = False,
        drawn: Optional[str] = None,
        keyed: bool = False,
        waits: float = 0,
    ) -> Any:
        sent = dict(body) if body is not None else None
        if drawn is not None and sent is not None and not sent.get(drawn):
            sent[drawn] = uuid.uuid4().hex
        if keyed and idempotency_key is None:
            idempotency_key = uuid.uuid4().hex
        values: Dict[str, Any] = dict(query or {})
        if scoped:
            values.update(self._scope)
        return read(
            self.caller.make(
                Call(
                    method,
                    path_of(path, tuple(ids)),
                    body=None if sent is None else write(sent),
                    query=query_of(values),
                    token=token,
                    opened=opened,
                    key=idempotency_key,
                    trace=traceparent,
                    once=once,
                    waits=waits,
                )
            )
        )

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        token: Optional[str] = None,
        tries: int = 0,
        waits: float = 0,
        cancel: Optional[Event] = None,
    ) -> Dict[str, Any]:
        """For the worker, and for results."""
        return cast(
            Dict[str, Any],
            read(
                self.caller.make(
                    Call(
                        "POST",
                        path,
                        body=write(dict(body)),
                        query=query_of(self._scope),
                        token=token,
                        tries=tries,
                        waits=waits,
                        cancel=cancel,
                    )
                )
            ),
        )

    def events(
        self,
        *,
        type: Optional[List[str]] = None,
        subject: Optional[str] = None,
        run_id: Optional[str] = None,
        queue: Optional[str] = None,
        task_type: Optional[str] = None,
        worker_id: Optional[str] = None,
        machine_id: Optional[str] = None,
        after: Optional[str] = None,
    ) -> EventStream:
        """A stream of events from now, or after a cursor or a time, exclusive: iterate over it."""
        return EventStream(
            self.caller,
            {
                "type": type,
                "subject": subject,
                "runId": run_id,
                "queue": queue,
                "taskType": task_type,
                "workerId": worker_id,
                "machineId": machine_id,
                "after": after,
                **self._scope,
            },
        )

    def result(self, task_id: str, timeout: Timeout = None) -> Any:
        """Waits until a task has ended, and returns its output; None if it has none. All calls of a client that wait at a time share one
        request, so any number of threads may wait.

        timeout: a timedelta, or seconds; None: no limit. When it is over, TimeoutError is raised; the task continues.
        Raises TaskFailed if the task FAILED or was CANCELLED, TaskNotFound if it does not exist or is no longer stored, an ApiError if the
        server refuses the request, and ClosedError when the client is closed. While no server answers, it waits."""
        return self.results.result(task_id, timeout)

    # Tracking.

    def track(self, envelope: Mapping[str, Any], *, lease: Optional[Lease] = None) -> Tracking:
        """An attempt as a context, for with and async with: it is reported as started, gets heartbeats, and is completed at the end.
        Entering waits until a server has answered, and raises a refusal, or an End if the attempt is already over."""
        return Tracking(lambda: self._begin(envelope, lease), self.tracking)

    def run(self, envelope: Mapping[str, Any], work: Callable[[Task], Any], *, lease: Optional[Lease] = None) -> Task:
        """Tracks an attempt, does the work, and completes it with the result or the error, which is not raised; the handle has the
        answer."""
        attempt = self._begin(envelope, lease)
        try:
            attempt.output = work(attempt)
        except Exception as error:
            attempt.close(error)
            if attempt.answer is not None and attempt.answer["finalState"] == "FAILED":
                log_failure(self.log, envelope, error, retry_of(attempt.answer), bool(attempt.answer.get("willRetry")))
        except BaseException as error:
            attempt.close(error)
            raise
        else:
            attempt.close(None)
        return attempt

    def _begin(self, envelope: Mapping[str, Any], lease: Optional[Lease]) -> Task:
        group = self._group(str(envelope.get("callbackBaseUrl") or ""))
        attempt = self.attempt_of(envelope, group, group.endpoints, lease)
        group.add(attempt)
        try:
            attempt.start()
        except BaseException:
            group.forget(attempt)
            raise
        self.leases.watch(attempt)
        return attempt

    def attempt_of(
        self,
        envelope: Mapping[str, Any],
        holder: Holder,
        endpoints: Endpoints,
        lease: Optional[Lease] = None,
        worker_timeout: float = 0,
        limit: float = 0,
    ) -> Task:
        """For the worker."""
        return Task(
            envelope, self.caller, endpoints, holder, lease or self.lease, self.metrics, self.log, worker_timeout, limit
        )

    def endpoints_of(self, callback: str) -> Endpoints:
        """The endpoints for an envelope's callbacks: its own address first, then the client's."""
        ours = self.caller.endpoints
        if not callback:
            return ours
        found = Endpoints([callback, *ours.urls], ours.allow_http)
        try:
            found.check_plain_http()
        except ConfigurationError as error:
            raise ConfigurationError(f"the envelope's callbackBaseUrl: {error}") from None
        return found

    def _group(self, callback: str) -> AttemptGroup:
        with self._lock:
            if self.caller.closing.is_set():
                raise ClosedError("the client is closed")
            group = self._groups.get(callback)
            if group is None:
                group = self._groups[callback] = AttemptGroup(
                    self.caller, self.endpoints_of(callback), self.metrics, self.log, self.settings()
                )
            return group

    def settings(self) -> Optional[Dict[str, Any]]:
        """The settings for a heartbeat child process; None: heartbeats are sent from this process."""
        return self.isolation() if self.isolated else None

    def isolation(self) -> Dict[str, Any]:
        """The settings for a heartbeat child process."""
        caller = self.caller
        if not isinstance(caller.transport, HttpTransport) or (
            caller.transport.tls is not None and self._ca_file is None
        ):
            raise ConfigurationError(
                "the heartbeat process cannot use the given tls or transport; with isolated=True use ca_file"
            )
        return {
            "agent": caller.agent,
            "timeout": caller.timeout,
            "caFile": self._ca_file,
            "proxy": self._proxy,
            "allowHttp": caller.endpoints.allow_http,
            "limit": self.isolated_limit,
        }


def authorities(ca_file: str) -> ssl.SSLContext:
    """An SSL context that trusts only the authorities in a PEM file."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"{ca_file} holds no valid PEM certificate: {error}") from None


__all__ = ["ApiError", "Client"]
