"""An in-memory Lubdub server."""

from __future__ import annotations

import contextlib
import itertools
import json
import urllib.parse
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Set, Union

from .. import types as t
from .._clock import Clock, Event
from .._complete import stamp
from .._http import Response, Stream, Transport
from ..client import Client
from ..errors import NoAnswer, NotSent
from ..worker import Worker as AnyWorker
from ._fake import Store
from ._hand import HandClock
from ._records import Refused, Task, Worker

TOKEN = "testing-token"


class Request:
    """A request that the server received. status is the answer's; 0 before there is one."""

    def __init__(self, method: str, path: str, headers: Mapping[str, str], body: bytes, at: float) -> None:
        self.method, self.path, self.headers, self.body, self.at = method, path, headers, body, at
        self.status = 0

    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body) if self.body else None

    def __repr__(self) -> str:
        return f"<{self.method} {self.path} {self.status}>"


# Answers in place of the server: a status with a body; None: the server answers. It may also raise NoAnswer.
Intercept = Callable[[Request], Union[None, "tuple[int, Any]", "tuple[int, Any, Dict[str, str]]"]]


class Server(Transport):
    """A server and the transport to it: no socket is opened. Time moves only when the test moves it: advance, jump, until. task.wait
    follows it, and real sleeps do not; while a handler really works it is paused, for 2 real seconds at most. Where handlers run on the
    test's event loop, move it from another thread. Tasks are retried as the API's defaults or their retry policy say.

    interval, timeout: the heartbeat interval of workers and their heartbeat timeout, in seconds."""

    def __init__(self, *, interval: float = 10, timeout: float = 30, clock: Optional[Clock] = None) -> None:
        self.hand = HandClock()
        self.clock: Clock = clock or self.hand
        self.url = "http://127.0.0.1:1"
        self.requests: List[Request] = []
        self.store = Store(self.clock, interval, timeout)
        self.intercept: Optional[Intercept] = None
        self.is_down = False
        self._clients: List[Client] = []
        self._losing: List[str] = []
        self._cut: Set[str] = set()  # tokens with which nothing arrives
        self._sweep_at: Optional[float] = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()

    def client(self, **options: Any) -> Client:
        """A client of this server."""
        options = {"token": TOKEN, "transport": self, "clock": self.clock, **options}
        client = Client(self.url, **options)
        self._clients.append(client)
        return client

    # The clock.

    def advance(self, seconds: float) -> None:
        """Advances the clock, and wakes waiters in the order of their times."""
        self.hand.advance(seconds)

    def jump(self, seconds: float) -> None:
        """Advances the clock as if the host had slept."""
        self.hand.jump(seconds)

    def until(self, what: str, holds: Callable[[], Any], most: float = 3600) -> None:
        """Advances the clock until a condition holds."""
        self.hand.until(what, holds, most)

    # Tasks and workers.

    def dispatch(self, **fields: Any) -> t.TaskEnvelope:
        """Creates a task without a queue, and returns its envelope."""
        return self.store.envelope(self.store.create(fields))

    def enqueue(self, type: Optional[str], payload: Any = None, *, queue: str = "default", **fields: Any) -> str:
        """Creates a task that waits in a queue, and returns its id."""
        return self.store.create({"type": type, "payload": payload, "queue": queue, **fields}).id

    def task(self, task_id: str) -> Task:
        """A task, to inspect: state, attempt, progress, details, output, error, completions."""
        return self.store.tasks[task_id]

    def worker(self, worker_id: str = "") -> Worker:
        """A worker, to inspect: status, held, completed, failed. The newest one unless its id is given."""
        workers = self.store.workers
        return workers[worker_id] if worker_id else list(workers.values())[-1]

    @contextlib.contextmanager
    def running(self, worker: AnyWorker) -> Generator[AnyWorker, None, None]:
        """Runs a worker of a client of this server in a thread, from its registration until it has stopped at the end of the block, which
        finishes its tasks. Raises what its run raises."""
        ended: List[Optional[BaseException]] = []

        def run() -> None:
            try:
                worker.run(signals=False)
                ended.append(None)
            except BaseException as error:
                ended.append(error)

        self.hand.spawn(run, "lubdub-test-worker")
        self.until("the worker registers", lambda: worker.registered or ended)
        try:
            if not ended:
                yield worker
        finally:
            worker.close()
            self.until("the worker stops", lambda: ended)
        if ended[0] is not None:
            raise ended[0]

    def cut_off(self, worker_id: str = "") -> None:
        """Loses what a worker sends from now on, as if its host had failed: after the heartbeat timeout its tasks are lost. The newest one
        unless its id is given."""
        worker = self.worker(worker_id)
        worker.cut = True
        self._cut |= {worker.token, *(task.token for task in self.store.tasks.values() if task.worker == worker.id)}
        self.store.wake()

    def reconnect(self) -> None:
        """Lets workers that were cut off reach the server again."""
        self._cut.clear()
        for worker in self.store.workers.values():
            worker.cut = False

    def cancel(self, task_id: str, reason: str = "") -> None:
        """Requests cancellation of a task."""
        self.store.cancel(task_id, reason)

    def expire(self, task_id: str, reason: str = "HEARTBEAT_TIMEOUT") -> None:
        """Ends the current attempt, as a timeout does."""
        self.store.expire(self.store.tasks[task_id], reason)

    def supersede(self, task_id: str) -> t.TaskEnvelope:
        """Starts another attempt."""
        return self.store.supersede(self.store.tasks[task_id])

    def drain(self, worker_id: str = "") -> None:
        """Asks a worker to drain."""
        self.worker(worker_id).draining = True
        self.store.wake()

    def drain_machine(self) -> None:
        """Drains all workers; workers that register later wait until resume_machine."""
        self.store.drained = True
        for worker in self.store.workers.values():
            worker.draining = True
        self.store.wake()

    def resume_machine(self) -> None:
        """Lets waiting workers claim."""
        self.store.drained = False
        for worker in self.store.workers.values():
            worker.draining = False

    def force_offline(self, worker_id: str = "") -> None:
        """Forces a worker offline, as an operator does; it cannot register until resume."""
        worker = self.worker(worker_id)
        worker.status, worker.forced = "OFFLINE", True
        self.store.sweep()
        self.store.wake()

    def resume(self) -> None:
        """Lets workers that were forced offline register again."""
        for worker in self.store.workers.values():
            worker.forced = False

    def forget(self, worker_id: str = "") -> None:
        """Deletes a worker, as a loss of data does."""
        del self.store.workers[self.worker(worker_id).id]
        self.store.wake()

    def down(self) -> None:
        """Answers nothing from now on."""
        self.is_down = True

    def up(self) -> None:
        """Answers again. The outage does not count as silence."""
        self.is_down = False
        self.store.credit()
        self._sweep()

    def lose_answers(self, *paths: str) -> None:
        """Receives the next request to each path, but loses the answer; a path may end with *."""
        self._losing += paths

    def seen(self, path: str, method: str = "") -> List[Request]:
        """The requests to a path so far; the path may start or end with *."""
        return [r for r in self.requests if matches(r.path, path) and method in ("", r.method)]

    # The methods of Transport.

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Optional[bytes],
        limit: float,
        cancel: Optional[Event] = None,
    ) -> Response:
        parts = urllib.parse.urlsplit(url)
        request = Request(method, parts.path, headers, body or b"", self.clock.now())
        self.requests.append(request)
        if self.is_down:
            raise NotSent(f"{method} {parts.path}: the server is down")
        if self._is_cut(request):
            raise NotSent(f"{method} {parts.path}: the worker is cut off")
        answered = self.intercept(request) if self.intercept is not None else None
        extra: Dict[str, str] = {}
        if answered is not None:
            status, answer = answered[0], answered[1]
            extra = answered[2] if len(answered) > 2 else {}  # pyright: ignore[reportGeneralTypeIssues]
            if status == 503:  # an outage, which does not count as silence
                self.store.credit()
        else:
            try:
                status, answer = self._handle(request, parts.query, limit, cancel)
            except Refused as refused:
                status, answer = refused.status, refused.body
            finally:
                self._sweep()
        request.status = status
        for path in self._losing:
            if matches(parts.path, path):
                self._losing.remove(path)
                raise NoAnswer(f"{method} {parts.path}: the answer was lost")
        found = {"content-type": "application/json", "x-request-id": f"req-{next(self._numbers)}"}
        found.update({name.lower(): value for name, value in extra.items()})
        return Response(status, found, json.dumps(answer).encode())

    def stream(self, url: str, headers: Mapping[str, str], limit: float, cancel: Optional[Event] = None) -> Stream:
        raise NoAnswer("this server has no events")

    def _is_cut(self, request: Request) -> bool:
        """Whether a request comes from a worker that is cut off."""
        if not self._cut:
            return False
        items: List[Dict[str, Any]] = request.json()["heartbeats"] if request.path == "/v1/heartbeats" else []
        tokens = {request.headers.get("Authorization", "")[7:], *(str(item.get("taskToken")) for item in items)}
        return not tokens.isdisjoint(self._cut)

    def _sweep(self) -> None:
        """Ends what has reached its timeout, and schedules the next sweep."""
        due = None if self.is_down else self.store.sweep()
        if due is not None and (self._sweep_at is None or due < self._sweep_at):
            self._sweep_at = due
            # not at once again: the sum of two times may be rounded down
            self.clock.call_later(max(due - self.clock.now(), 0.001), self._sweep_again)

    def _sweep_again(self) -> None:
        self._sweep_at = None
        if self._clients:
            self._sweep()

    def _handle(self, request: Request, query: str, limit: float, cancel: Optional[Event]) -> "tuple[int, Any]":
        store, parts, body = self.store, request.path.strip("/").split("/"), request.json()
        bearer = request.headers.get("Authorization", "").replace("Bearer ", "", 1)
        self._sweep()
        if parts[:2] == ["v1", "heartbeats"]:
            return 200, {
                "results": [store.beat(item) for item in body["heartbeats"]],
                "serverTime": stamp(self.clock.wall()),
            }
        if parts[:2] == ["v1", "tasks"] and len(parts) == 4:
            return self._callback(parts[2], parts[3], bearer, body or {})
        if parts[:2] == ["v1", "queues"] and parts[3:] == ["claim"]:
            return 200, {"tasks": store.claim(parts[2], bearer, body, limit, cancel)}
        if parts[:2] == ["v1", "workers"] and len(parts) == 4:
            return 200, store.worker_act(parts[2], parts[3], bearer, body or {}, TOKEN)
        if bearer != TOKEN:
            raise Refused(401, "unauthorized", "this is not the test server's token")
        if (request.method, parts) == ("POST", ["v1", "tasks:wait"]):
            return 200, self._wait(body, limit, cancel)
        return self._control(request, parts, body)

    def _wait(self, body: Dict[str, Any], limit: float, cancel: Optional[Event]) -> Dict[str, List[Any]]:
        """Waits until one of several tasks has ended."""
        store, ids = self.store, body["taskIds"]
        end = self.clock.now() + float(body.get("waitMs") or 0) / 1000
        undo = cancel.then(store.wake) if cancel is not None else lambda: None
        try:
            with store.cond:
                while True:
                    over = [store.shown(store.tasks[id]) for id in ids if id in store.tasks and store.tasks[id].over]
                    answer = {"tasks": over[:100], "notFound": [id for id in ids if id not in store.tasks]}
                    left = end - self.clock.now()
                    if any(answer.values()) or left <= 0:
                        return answer
                    if cancel is not None and cancel.is_set():
                        raise NoAnswer("POST /v1/tasks:wait: cancelled")
                    store.cond.wait(min(left, limit))
        finally:
            undo()

    def _callback(self, task_id: str, act: str, bearer: str, body: Dict[str, Any]) -> "tuple[int, Any]":
        if act == "cancel":
            self.store.cancel(task_id, str(body.get("reason") or ""))
            return 202, self.store.shown(self.store.find(task_id))
        return 200, self.store.callback(task_id, act, bearer, body)

    def _control(self, request: Request, parts: Sequence[str], body: Any) -> "tuple[int, Any]":
        store, method = self.store, request.method
        if (method, list(parts)) == ("POST", ["v1", "tasks"]):
            trace = body.get("traceparent") or request.headers.get("Traceparent")
            task = store.create({**body, "traceparent": trace})
            return 201, store.shown(task) if task.fields.get("queue") else store.envelope(task)
        if (method, list(parts)) == ("POST", ["v1", "workers"]):
            return 201, store.register(body)
        if method == "GET" and len(parts) == 3 and parts[1] == "tasks":
            return 200, store.shown(store.find(parts[2]))
        raise Refused(404, "not_found", "the test server has no such call; set Server.intercept to answer it")


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern that starts or ends with *."""
    if pattern.startswith("*"):
        return path.endswith(pattern[1:])
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
