"""Runs one handler without a worker or a server."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from typing import Any, Callable, List, Optional, Tuple, Union, cast

from .. import types as t
from .._beats import BeatEntry
from .._call import write
from .._clock import Clock, Timer
from .._complete import completion
from .._loop import Loop
from .._workerstate import Handler, handler_of
from ..task import Holder
from ..errors import TaskFailed
from ..failures import Failure
from ..worker import Worker
from ._server import Server


class Recorded:
    """What a handler has reported, in order."""

    def __init__(self) -> None:
        self.progress: List[Tuple[float, Optional[str]]] = []  # percentages, each with the message that is current then
        self.checkpoints: List[Any] = []


def run(
    target: Union[Handler, Worker],
    payload: Any = None,
    *,
    type: str = "",
    attempt: int = 1,
    last_checkpoint: Any = None,
    recorded: Optional[Recorded] = None,
    **fields: Any,
) -> Any:
    """Runs a handler, or a worker's handler of a type with its middleware, for one attempt, and returns its output as a server would: decoded
    from JSON. Raises what the attempt would end with: what the handler raises, or an OutputError if the output cannot be sent.

    task.wait returns at once. Limits do not end the attempt, a worker's hooks are not called, and coroutines run on a new event loop.
    recorded: gets the reports of progress and the checkpoints. fields: other fields of the task's creation, by their names in the API.
    """
    handler = handler_of(target, type) if isinstance(target, Worker) else target
    if isinstance(target, Worker):
        fields.setdefault("queue", target.queue)
    with Server(clock=_Instant()) as server:
        client, holder = server.client(), _Recorder(recorded or Recorded())
        server.dispatch(taskId="task", type=type or None, payload=json.loads(write(payload)), **fields)
        task = server.task("task")
        task.attempt, task.state, task.details = attempt, "RUNNING", json.loads(write(last_checkpoint))
        envelope = {**server.store.envelope(task), "state": "RUNNING"}
        handle = client.attempt_of(envelope, holder, client.endpoints_of(""))
        handle.start()
        output: Any = handler(handle)
        if inspect.isawaitable(output):
            loop = Loop()
            try:
                output = loop.run(output, lambda cancel: None)
            except asyncio.CancelledError:
                raise Failure("the handler was cancelled") from None
            finally:
                loop.end()
        if not task.completions:
            return json.loads(completion({"output": output}))["output"]
        shown = server.store.shown(task)  # the handler has completed it
        if shown["state"] != "SUCCEEDED":
            raise TaskFailed(cast(t.Task, shown))
        return task.output


class _Recorder(Holder):
    """Keeps what would go with heartbeats."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.entry: Optional[BeatEntry] = None

    def hold(self, entry: BeatEntry) -> None:
        self.entry = entry

    def report(self, key: str, now: bool = False) -> None:
        assert self.entry is not None
        report = self.entry.report
        if report.progress == report.version:
            self.recorded.progress.append((report.pct or 0, report.message))
        else:
            self.recorded.checkpoints.append(json.loads(report.details))

    def release(self, key: str, ending: bool = False) -> int:
        return self.entry.report.version if self.entry is not None else -1


class _Instant(Clock):
    """A clock that moves by what its waits ask for, so that they return at once."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def awake(self) -> float:
        return self.at

    def condition(self) -> threading.Condition:
        return _Condition(self)

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        return Timer(call)  # no limit ends the attempt


class _Condition(threading.Condition):
    def __init__(self, clock: _Instant) -> None:
        super().__init__(threading.Lock())
        self.clock = clock

    def wait(self, timeout: Optional[float] = None) -> bool:
        if timeout is None:
            raise AssertionError("the handler waits for the end of its work, which does not come here; use a Server")
        self.clock.at += timeout
        return False
