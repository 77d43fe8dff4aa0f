"""Workers: claim tasks of a queue and run them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from . import _exit, _identity
from ._log import show_info
from ._loop import Loop
from ._pool import settle
from ._runner import Runner, Unfinished
from ._signals import SIGNALS
from ._workerstate import Handler, Hook, Middleware
from .asyncclient import AsyncClient
from .client import Client
from .errors import ConfigurationError, ForkedError

H = TypeVar("H", bound=Handler)
K = TypeVar("K", bound=Hook)


class Worker:
    """Claims tasks of a queue and runs each with the handler of its type, in a thread; coroutine handlers share one event loop. A Worker
    runs once. Durations are in seconds.

    client: by default from the environment: LUBDUB_URL, and LUBDUB_TOKEN or LUBDUB_TOKEN_FILE.
    types: the types to claim, each of which needs a handler; by default those that have one.
    runtimes, labels: what tasks may require, in addition to python and its version, and to labels from POD_NAME, POD_NAMESPACE, NODE_NAME,
    ZONE and DEPLOYMENT. name: by default POD_NAME or the program's. machine_id: by default NODE_NAME or the host's name. version: the
    program's.
    default: the handler of tasks without a type. A worker without one does not claim them.
    concurrency: how many tasks run at once. task_timeout: how long a task may take; 0: no limit; by default 5 minutes, and no limit for a
    task with a runTimeoutMs, which the server enforces.
    soft_stop, hard_stop: how long after SIGTERM or close handlers are stopped, and tasks that still run are returned to the queue. By
    default they follow TERMINATION_GRACE_PERIOD_SECONDS, which is 30 if not set: 20 and 25 seconds. The hard stop must lie within it.
    watchdog: ends tasks that report neither progress nor a checkpoint for this long; 0: off.
    probe: an address such as ":8081" that answers 200 while the process's heartbeat loop runs; probe_url: how the server reaches it.
    isolated: send heartbeats from a child process, for handlers that hold the GIL for seconds; by default the client's setting.
    """

    def __init__(
        self,
        queue: str = "default",
        *,
        client: Union[Client, AsyncClient, None] = None,
        types: Optional[Sequence[str]] = None,
        runtimes: Sequence[str] = (),
        labels: Optional[Mapping[str, str]] = None,
        name: str = "",
        machine_id: str = "",
        version: str = "",
        concurrency: int = 100,
        task_timeout: Optional[float] = None,
        soft_stop: Optional[float] = None,
        hard_stop: Optional[float] = None,
        watchdog: float = 0,
        probe: Optional[str] = None,
        probe_url: str = "",
        isolated: Optional[bool] = None,
        logger: Optional[logging.Logger] = None,
        default: Optional[Handler] = None,
    ) -> None:
        if not queue:
            raise ConfigurationError('no queue: name the one to claim from, such as "default"')
        if concurrency < 1:
            raise ConfigurationError(f"a concurrency of {concurrency} is too low; 1 is the least")
        for name_, seconds in (("task_timeout", task_timeout), ("watchdog", watchdog), ("soft_stop", soft_stop)):
            if seconds is not None and not seconds >= 0:
                raise ConfigurationError(f"{name_} is negative: {seconds}")
        if default is not None and not callable(default):
            raise ConfigurationError("the default handler is not callable")
        self.queue, self.concurrency = queue, concurrency
        self.task_timeout, self.watchdog = task_timeout, watchdog
        self.soft_stop, self.hard_stop = stops_of(soft_stop, hard_stop)
        self.probe, self.probe_url, self.isolated = probe, probe_url, isolated
        self.client = client.client if isinstance(client, AsyncClient) else client or Client()
        self.owns_client = client is None
        self.log = logger or logging.getLogger("lubdub.worker")
        self.handlers: Dict[str, Handler] = {}
        self.default = default
        self.middleware: List[Middleware] = []
        self.startup: List[Hook] = []
        self.shutdown: List[Hook] = []
        self._types = list(types) if types is not None else None
        self._given = {"name": name, "machineId": machine_id, "version": version}
        self._runtimes, self._labels = list(runtimes), dict(labels or {})
        self._runner = Runner(self)
        self._ran = False
        self._name = ""  # while it runs
        self._pid = os.getpid()

    def handler(self, type: str) -> Callable[[H], H]:
        """Registers the handler of a task type: @worker.handler("send_email")."""

        def add(call: H) -> H:
            self.handle(type, call)
            return call

        return add

    def handle(self, type: str, call: Handler) -> None:
        """Sets the handler of a task type: it gets the Task, and returns the output, any JSON."""
        if not type:
            raise ConfigurationError("a handler has no type; name the type of its tasks")
        if not callable(call):
            raise ConfigurationError(f"the handler of {type!r} is not callable")
        if type in self.handlers:
            raise ConfigurationError(f"there are two handlers for {type!r}; keep one")
        if self._ran:
            raise ConfigurationError(
                f"the handler of {type!r} was added after the worker started; add handlers before run"
            )
        self.handlers[type] = call

    def on_startup(self, hook: K) -> K:
        """Registers a function that is called once before the worker registers: @worker.on_startup. A coroutine function runs on the event
        loop of the handlers. If it raises, run raises that error, and the worker does not register."""
        self._hook(self.startup, hook)
        return hook

    def on_shutdown(self, hook: K) -> K:
        """Registers a function that is called once after the last handler has ended and the worker has deregistered, or after a startup
        hook has failed: @worker.on_shutdown. Handlers that do not end have 2 s after the hard stop. A coroutine function is cancelled after
        10 s. If it raises, that is logged, and the others are called. A worker that is closed before run calls no hooks.
        """
        self._hook(self.shutdown, hook)
        return hook

    def _hook(self, hooks: List[Hook], hook: Hook) -> None:
        if not callable(hook):
            raise ConfigurationError("the hook is not callable")
        if self._ran:
            raise ConfigurationError("the hook was added after the worker started; add hooks before run")
        hooks.append(hook)

    def use(self, *middleware: Middleware) -> None:
        """Wraps all handlers, the first outermost."""
        self.middleware += middleware

    @property
    def types(self) -> List[str]:
        """The types that are claimed."""
        return list(self._types) if self._types is not None else sorted(self.handlers)

    @property
    def worker_id(self) -> str:
        """The id of the newest registration; "": none."""
        return self._runner.worker_id()

    @property
    def registered(self) -> bool:
        """Whether it has registered and not deregistered."""
        return self.worker_id != ""

    @property
    def active_count(self) -> int:
        """How many tasks are running."""
        return len(self._runner.jobs)

    def close(self) -> None:
        """Stops gracefully; run returns when that is done."""
        self._runner.stop()

    def kill(self) -> None:
        """Stops now: tasks that still run are returned to the queue."""
        self._runner.kill()

    def run(self, *, signals: bool = True) -> None:
        """Registers and runs tasks until close is called, a signal arrives (SIGTERM or SIGINT, in the main thread only), or the server
        drains the worker. Then it stops gracefully: it claims nothing more, sends heartbeats while handlers finish, cancels them at the
        soft stop, returns the tasks that still run at the hard stop to the queue, and deregisters. It raises what is wrong with the worker,
        why the server refuses it, or Unfinished, which names the returned tasks. A second signal is kill. A third one, or one while a
        function of on_startup runs, has the effect that it had before run."""
        self._begin()
        with self._stopping(signals, self._runner.change):
            self._run()

    async def run_async(self, *, signals: bool = True) -> None:
        """run, for a coroutine: coroutine handlers and hooks run on its event loop, others in threads, as do heartbeats. Cancelling it
        stops the worker as a signal does, and is raised once the worker has stopped; cancelling it again is kill."""
        self._begin()
        loop = asyncio.get_running_loop()
        self._runner.loop = Loop(loop)
        over: "asyncio.Future[None]" = loop.create_future()

        def run() -> None:
            failure: Optional[BaseException] = None
            try:
                self._run()
            except _exit.Exiting:
                raise
            except BaseException as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(settle, over, None, failure)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: None)

        cancelled: Optional[asyncio.CancelledError] = None
        with self._stopping(signals, wake):
            self.client.caller.clock.spawn(run, "lubdub-worker")
            while not over.done():
                try:
                    await asyncio.wait([over])
                except asyncio.CancelledError as error:
                    (self.kill if cancelled is not None else self.close)()
                    cancelled = error
        if cancelled is not None:
            raise cancelled from over.exception()
        over.result()

    def _stopping(self, wanted: bool, wake: Callable[[], object]) -> ContextManager[None]:
        """Stops the worker at a signal, in the main thread, which wake wakes up."""
        if not wanted or threading.current_thread() is not threading.main_thread():
            return contextlib.nullcontext()
        return SIGNALS.stopping(self._runner, wake)

    def _begin(self) -> None:
        """Checks the worker before it runs."""
        if os.getpid() != self._pid:
            raise ForkedError(
                "this worker was created before the process forked; create it, and its client, in the fork"
            )
        if self._ran:
            raise ConfigurationError("the worker has already run; create a new one")
        self._check()
        self._ran = True

    def _run(self) -> None:
        wanted = self._given["name"] or _identity.name_found(self._pid)
        show_info()
        self._key = (os.getpid(), *self.client.caller.endpoints.urls, self.queue, self._machine())
        self._name = _identity.take_name(self._key, wanted)
        try:
            self._runner.run()
        finally:
            _identity.release_name(self._key, self._name)
            if self.owns_client:
                self.client.close()

    def registration(self) -> Dict[str, Any]:
        """The body of the registration."""
        pid = os.getpid()
        body: Dict[str, Any] = {
            "queue": self.queue,
            "types": self.types,
            "runtimes": list(dict.fromkeys(_identity.runtimes_found() + self._runtimes)),
            "name": self._name or self._given["name"] or _identity.name_found(pid),
            "machineId": self._machine(),
            "hostname": _identity.hostname(),
            "pid": pid,
            "version": self._given["version"],
            "maxConcurrent": self.concurrency,
            "labels": {**_identity.labels_found(), **self._labels},
            "probeUrl": self._runner.probe_url,
        }
        return {key: value for key, value in body.items() if value not in ("", {})}

    def _machine(self) -> str:
        return self._given["machineId"] or _identity.machine_found()

    def _check(self) -> None:
        if not self.handlers:
            raise ConfigurationError(
                "no handler; add one with @worker.handler(type) before run"
                + ("; a worker with a default handler needs one type too" if self.default is not None else "")
            )
        for type in self.types:
            if type not in self.handlers:
                raise ConfigurationError(
                    f"tasks of type {type!r} would be claimed but have no handler; add one, or remove the type"
                )


def stops_of(soft: Optional[float], hard: Optional[float]) -> Tuple[float, float]:
    """The soft and the hard stop: as given, or what the orchestrator's grace period allows. Refuses stops beyond the grace period."""
    found = os.environ.get("TERMINATION_GRACE_PERIOD_SECONDS", "")
    grace = int(found) if found.isdigit() else None
    if hard is not None and grace is not None and hard >= grace:
        raise ConfigurationError(
            f"the process is killed {grace} s after SIGTERM, which leaves no time for a hard stop after {hard:g} s; lower "
            "soft_stop and hard_stop, or raise terminationGracePeriodSeconds"
        )
    if hard is None:
        whole = 30 if grace is None else grace
        hard = whole - min(5.0, whole / 6)
    if soft is None:
        soft = hard - min(5.0, hard / 5)
    if not hard >= soft:
        raise ConfigurationError(
            f"the hard stop, after {hard:g} s, must not come before the soft one, after {soft:g} s"
        )
    return soft, hard


__all__ = ["Handler", "Middleware", "Unfinished", "Worker"]
