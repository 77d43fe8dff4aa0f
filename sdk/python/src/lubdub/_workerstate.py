"""What the parts of a running worker share."""

from __future__ import annotations

import logging
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Protocol, Union

from ._beats import BeatEntry
from ._clock import Event
from ._exchange import Exchange
from ._tracking import AttemptListener
from ._isolated import IsolatedWorkerBeats
from ._log import of_type
from ._loop import Loop
from ._workerbeats import Session, WorkerBeats
from .task import Task, Holder
from .client import Client
from .ends import End, Lost
from .errors import ForcedOffline, LubdubError
from .failures import Failure

Handler = Callable[[Task], Union[Any, Awaitable[Any]]]
Middleware = Callable[[Handler], Handler]
Hook = Callable[[], Any]


class WorkerSettings(Protocol):
    """The settings of a Worker."""

    client: Client
    log: logging.Logger
    queue: str
    concurrency: int
    handlers: Dict[str, Handler]
    default: Optional[Handler]
    middleware: List[Middleware]
    startup: List[Hook]
    shutdown: List[Hook]
    task_timeout: Optional[float]
    soft_stop: float
    hard_stop: float
    watchdog: float
    probe: Optional[str]
    probe_url: str
    isolated: Optional[bool]

    @property
    def types(self) -> List[str]:
        """The types of the tasks that it claims."""
        ...

    def registration(self) -> Dict[str, Any]:
        """The body of its registration."""
        ...


def handler_of(worker: WorkerSettings, type: str) -> Handler:
    """The handler of a type with the worker's middleware; "": the default handler."""
    handler = worker.handlers.get(type) if type else worker.default
    if handler is None and not type:
        raise Failure(
            "the task has no type, and this worker no default handler; create the task with a type, or give the worker a "
            "default handler with lubdub.Worker(default=...)",
            "CONFIGURATION",
            retryable=False,
        )
    if handler is None:
        raise Failure(f"this worker has no handler for tasks of type {type!r}", "CONFIGURATION")
    for wrap in reversed(worker.middleware):
        handler = wrap(handler)
    return handler


class WorkerHolder(Holder):
    """Heartbeats for attempts, as part of their worker's heartbeat."""

    def __init__(self, state: "WorkerState") -> None:
        self.state, self.over = state, state.left

    def hold(self, entry: BeatEntry) -> None:
        self.state.beats.hold(entry)

    def report(self, key: str, now: bool = False) -> None:
        self.state.beats.report(key, now)

    def release(self, key: str, ending: bool = False) -> int:
        try:
            return self.state.beats.release(key, ending)
        finally:
            self.state.attempts.pop(key, None)

    def settled(self, key: str) -> None:
        if not self.state.left.is_set():  # else it was cut: no other inventory may omit the attempt
            self.state.beats.settled(key)

    def drop(self, key: str) -> None:
        self.state.beats.drop(key)

    def lost(self, attempt: Task, cause: End) -> None:
        where = attempt.task_id, of_type(attempt.envelope), attempt.attempt
        self.state.logger.warning("Task %s%s, attempt %d, is lost: %s", *where, cause)

    def worker_id(self) -> str:
        return self.state.worker_id()

    def token(self) -> str:
        session = self.state.session
        return session.token if session is not None else ""

    def exchange(self) -> Optional[Exchange]:
        session = self.state.session
        return self.state.exchange if session is not None and session.exchange else None


class WorkerState(AttemptListener):
    """A running worker's session, stops and heartbeats, which its registration, claims and tasks share."""

    def __init__(self, worker: WorkerSettings) -> None:
        super().__init__(worker.client.metrics, worker.log, worker.client.caller.clock)
        self.worker, self.client, self.clock = worker, worker.client, worker.client.caller.clock
        self.left = Event(self.clock)
        self.holder = WorkerHolder(self)
        self.cond = self.clock.condition()
        self.stopping, self.soft, self.hard = Event(self.clock), Event(self.clock), Event(self.clock)
        self.no_claims = Event(self.clock)
        self.session: Optional[Session] = None
        self.exchange = Exchange(worker.client.caller)
        self.active = 0  # running tasks
        self.entered: List[float] = []  # registrations of the last minute
        self.claiming = self.draining = self.joining = self.announcing = False
        self.leaving = False  # no more tasks are started
        self.fatal: Optional[LubdubError] = None
        self.forced: Optional[ForcedOffline] = None  # nothing more is sent
        self.given_back: Dict[str, str] = {}  # ids of tasks, by attempt, that the deregistration returns to the queue
        self.probe_url = ""
        self.signals: Optional[int] = None  # a descriptor that receives signals even while code holds the GIL
        self.seen = self.clock.now()  # when the heartbeat loop was last awake
        self.beats: Union[WorkerBeats, IsolatedWorkerBeats]
        self.loop = Loop()

    def worker_id(self) -> str:
        """The id of the newest registration."""
        session = self.session
        return session.worker_id if session is not None else ""

    def change(self) -> None:
        """Wakes all waiters."""
        with self.cond:
            self.cond.notify_all()

    def await_(self, holds: Callable[[], bool], until: Optional[float] = None) -> bool:
        """Waits for a condition, which is checked after each change; returns whether it became true in time."""
        with self.cond:
            while not holds():
                left = None if until is None else until - self.clock.now()
                if left is not None and left <= 0:
                    return False
                self.cond.wait(left)
            return True

    # Results of heartbeats.

    def force_offline(self, why: ForcedOffline) -> None:
        """Ends all work as lost. Nothing more is sent about it, and the worker does not register again."""
        with self.cond:
            first, self.forced = self.forced is None, self.forced or why
            self.fatal, self.leaving = self.forced, True
        if first:
            self.logger.error("%s", why)
        for attempt in list(self.attempts.values()):
            attempt.end(Lost("", "FORCED_OFFLINE"))
        for event in (self.left, self.soft, self.no_claims, self.stopping):
            event.set()
        self.beats.close()
        self.change()

    def waiting(self) -> bool:
        """Whether its machine is drained, so that it does not claim until the machine is resumed."""
        return self.session is not None and self.session.waiting

    def drain(self, deadline: str) -> None:
        self.drain_now(f"until {deadline}" if deadline else "")

    def drain_now(self, until: str = "") -> None:
        """Starts a drain that the server requested."""
        with self.cond:
            if not self.draining and not self.stopping.is_set():
                self.logger.info(
                    "Draining: requested by the server (worker %s, %d active) %s",
                    self.worker_id(),
                    self.active,
                    until,
                )
            self.draining = True
            self.cond.notify_all()

    def worker_token(self, worker_id: str, token: str, timeout: float) -> None:
        session = self.session
        if session is not None and session.worker_id == worker_id:
            session.token, session.timeout = token or session.token, timeout

    def awake(self) -> None:
        self.seen = self.clock.now()

    # Tasks.

    def mark_returned(self, key: str, task_id: str) -> None:
        """Marks a task that the deregistration returns to the queue."""
        self.given_back[key] = task_id

    def unmark_returned(self, key: str) -> None:
        """Unmarks a task: the attempt is no longer ours."""
        self.given_back.pop(key, None)

    def lost(self, key: str, code: str, fields: Mapping[str, Any]) -> None:
        self.unmark_returned(key)
        super().lost(key, code, fields)

    def counted(self, state: str) -> None:
        """Counts a finished task for the next heartbeat."""
        if state in ("SUCCEEDED", "FAILED"):
            self.beats.count(int(state == "SUCCEEDED"), int(state == "FAILED"))
