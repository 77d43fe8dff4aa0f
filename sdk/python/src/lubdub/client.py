"""The client: all calls, events, and the tracking of attempts."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union, cast

from . import _fork
from . import types as t
from ._answers import objects, seconds
from ._calls import Calls
from ._call import Call, Caller, path_of, query_of, read, write
from ._clock import MAX_PAUSE, Clock, Event, backoff
from ._events import EventStream
from ._hold import Crowd, Leases
from ._http import HttpTransport, Transport
from ._log import LOG, log_failure, retry_of
from ._places import Endpoints, token_of
from ._version import __version__
from .attempt import Attempt, Holder, Lease
from .ends import ClientClosed
from .errors import MAX_RETRY_AFTER, AnswerError, ApiError, ClosedError, ConfigurationError, LubdubError, refusal
from .metrics import Metrics
from .track import Tracking


class Client(Calls):
    """Talks to one deployment, at url, or at several with commas between them or in a list; None: what LUBDUB_URL says. It is for any
    number of threads at once. Nothing is sent yet.

    token, token_file, token_func: what opens control calls, else LUBDUB_TOKEN, or the file LUBDUB_TOKEN_FILE. A file is read, and a
    function called, when a token is needed for the first time, and again when it was refused.
    tenant_id, workspace_id: the scope of every call; without it, it is the token's.
    user_agent: names the program, before the SDK.
    allow_http: lets tokens go over http:// to other hosts. Whoever listens there can take them.
    lease: what becomes of tracked work while no server answers: "patient" (it goes on until one says that it is over) or "strict" (it
    is stopped when no beat was accepted for as long as the attempt may be silent; for effects that must never overlap).
    isolated: beats come from a child process, for work that holds the GIL for seconds.
    isolated_limit: for how many seconds at most the child goes on while this process gives no sign of life.
    timeout: seconds that a server may take to answer once. tries: how often a call that may be repeated is made at most.
    ca_file: trusts the authorities in a PEM file, and no others; tls: an ssl.SSLContext instead.
    proxy: the address of a proxy; "": none; None: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say.
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
        logger: Optional[logging.Logger] = None,
        transport: Optional[Transport] = None,
        clock: Optional[Clock] = None,
    ) -> None:
        if lease not in ("patient", "strict"):
            raise ConfigurationError(f'there is no lease {lease!r}; it is "patient" or "strict"')
        if not timeout > 0:
            raise ConfigurationError(f"a timeout of {timeout} s answers nothing; give a positive one")
        if tries < 1:
            raise ConfigurationError(f"{tries} tries make no call; 1 is the least")
        if url is None or url == "":
            url = os.environ.get("LUBDUB_URL", "")
        urls = url.split(",") if isinstance(url, str) else list(url)
        endpoints = Endpoints(urls, allow_http)
        opener = token_of(token, token_file, token_func)
        if opener:
            endpoints.check_secrecy()
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
        self.log = logger or LOG
        self.leases = Leases(self.caller.clock)
        self._lock = threading.Lock()
        self._crowds: Dict[str, Crowd] = {}
        if isolated:
            self.isolation()
        _fork.tell(self)

    def __repr__(self) -> str:
        return f"<lubdub.Client {','.join(self.caller.endpoints.urls)}>"

    def after_fork(self) -> None:
        """What was tracked stays the parent's; the fork has connections of its own."""
        self._lock = threading.Lock()
        self._crowds = {}
        self.caller.closing = type(self.caller.closing)(self.caller.clock)
        self.leases = Leases(self.caller.clock)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the beats of what is still tracked, whose cause is then ClientClosed: the server will take the work for lost. Calls that
        wait for their repeat give up."""
        with self._lock:
            crowds, self._crowds = list(self._crowds.values()), {}
        for crowd in crowds:
            crowd.close(ClientClosed())
        self.caller.closing.set()
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
        """For the worker."""
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

    def create_tasks(
        self,
        body: t.CreateTasksRequest,
        *,
        traceparent: Optional[str] = None,
    ) -> t.CreateTasksResponse:
        """Makes up to 1,000 creations, each with an outcome of its own, in their order. Those without an idempotencyKey are given one,
        so that repeats are safe. Items that are answered 429 or 503 are created again, at most as often as the client's tries allow.
        created() makes an envelope, a task or an error of a result."""
        tasks: List[Any] = [
            {**one, "idempotencyKey": one.get("idempotencyKey") or uuid.uuid4().hex} for one in body["tasks"]
        ]
        answer = super().create_tasks(cast(t.CreateTasksRequest, {**body, "tasks": tasks}), traceparent=traceparent)
        results = objects(answer.get("results"))
        if len(results) != len(tasks):
            raise AnswerError(f"POST /v1/tasks:batch: not one result for each of {len(tasks)} creations")
        for tried in range(self.caller.tries - 1):
            again = [number for number, result in enumerate(results) if result.get("status") in (429, 503)]
            wait = max(
                (min(seconds(results[number].get("retryAfterMs")), MAX_RETRY_AFTER) for number in again), default=0.0
            )
            if not again or self.caller.closing.wait(wait + backoff(tried, MAX_PAUSE)):
                break
            repeated = {**body, "tasks": [tasks[number] for number in again]}
            try:
                found = (
                    super().create_tasks(cast(t.CreateTasksRequest, repeated), traceparent=traceparent).get("results")
                )
            except LubdubError as error:  # what is known of the others must not be lost
                self.log.warning("%d of %d creations could not be made again: %s", len(again), len(tasks), error)
                break
            for number, result in zip(again, objects(found)):
                results[number] = result
        return cast(t.CreateTasksResponse, {**answer, "results": results})

    def enqueue(
        self, body: t.CreateTaskRequest, *, idempotency_key: Optional[str] = None, traceparent: Optional[str] = None
    ) -> t.Task:
        """create_task for a task that waits in a queue."""
        if not body.get("queue"):
            raise ConfigurationError("a task that waits needs a queue; dispatch() creates one that is pushed")
        return cast(t.Task, self.create_task(body, idempotency_key=idempotency_key, traceparent=traceparent))

    def dispatch(
        self,
        body: t.CreateTaskRequest,
        *,
        idempotency_key: Optional[str] = None,
        traceparent: Optional[str] = None,
    ) -> t.TaskEnvelope:
        """create_task for a task that is pushed: hand its envelope to whoever does it, and track it there."""
        if body.get("queue"):
            raise ConfigurationError("a task with a queue waits for a worker's claim; enqueue() creates it")
        return cast(t.TaskEnvelope, self.create_task(body, idempotency_key=idempotency_key, traceparent=traceparent))

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

    # Tracking.

    def track(self, envelope: Mapping[str, Any], *, lease: Optional[Lease] = None) -> Tracking:
        """An attempt as a context, for with and async with: it is told as started, beaten for, and completed at the end. Entering
        waits until a server has answered, and raises a refusal, or an End where the attempt is over already."""
        return Tracking(lambda: self._begin(envelope, lease))

    def run(
        self, envelope: Mapping[str, Any], work: Callable[[Attempt], Any], *, lease: Optional[Lease] = None
    ) -> Attempt:
        """Tracks an attempt, does the work, and completes it with what that returns or raises, which does not go on; the handle has
        the answer."""
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

    def _begin(self, envelope: Mapping[str, Any], lease: Optional[Lease]) -> Attempt:
        crowd = self._crowd(str(envelope.get("callbackBaseUrl") or ""))
        attempt = self.attempt_of(envelope, crowd, crowd.endpoints, lease)
        crowd.add(attempt)
        try:
            attempt.start()
        except BaseException:
            crowd.forget(attempt)
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
    ) -> Attempt:
        """For the worker."""
        return Attempt(
            envelope, self.caller, endpoints, holder, lease or self.lease, self.metrics, self.log, worker_timeout, limit
        )

    def endpoints_of(self, callback: str) -> Endpoints:
        """Where callbacks of an envelope go: to its own address first, then to the client's."""
        ours = self.caller.endpoints
        if not callback:
            return ours
        found = Endpoints([callback, *ours.urls], ours.allow_http)
        try:
            found.check_secrecy()
        except ConfigurationError as error:
            raise ConfigurationError(f"the envelope's callbackBaseUrl: {error}") from None
        return found

    def _crowd(self, callback: str) -> Crowd:
        with self._lock:
            if self.caller.closing.is_set():
                raise ClosedError("the client is closed")
            crowd = self._crowds.get(callback)
            if crowd is None:
                crowd = self._crowds[callback] = Crowd(
                    self.caller, self.endpoints_of(callback), self.metrics, self.log, self.settings()
                )
            return crowd

    def settings(self) -> Optional[Dict[str, Any]]:
        """What a child process that beats needs to know; None: beats come from this process."""
        return self.isolation() if self.isolated else None

    def isolation(self) -> Dict[str, Any]:
        """What a child process that beats needs to know."""
        caller = self.caller
        if not isinstance(caller.transport, HttpTransport) or (
            caller.transport.tls is not None and self._ca_file is None
        ):
            raise ConfigurationError(
                "a child process cannot have the tls or the transport that was given; with isolated=True use ca_file"
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
    """A context that trusts the authorities in a PEM file, and no others."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"{ca_file} holds no certificate in PEM form that can be read: {error}") from None


def created(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """What one result of create_tasks created: an envelope or a task; a refusal is raised."""
    status = int(result.get("status") or 0)
    if status // 100 == 2:
        return result
    raise refusal("POST /v1/tasks:batch", status, {}, write(dict(result)))


__all__ = ["ApiError", "Client", "created"]
