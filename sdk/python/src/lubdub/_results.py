"""Waits for the ends of tasks: all results that a client waits for share one request."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import itertools
import logging
import re
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from ._answers import objects, text
from ._call import Caller
from ._clock import MAX_PAUSE, Event, backoff, wait_any
from ._log import Outage
from ._pool import settle
from .errors import (
    AnswerError,
    ApiError,
    ClosedError,
    ConfigurationError,
    LubdubError,
    TaskFailed,
    TaskNotFound,
    may_retry,
    wait_of,
)

Timeout = Union[datetime.timedelta, float, None]

PATH = "/v1/tasks:wait"
MAX_IDS = 1000  # tasks that a request may name
MAX_TASKS = 100  # tasks in an answer
ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

# Seconds that a request waits for the first end. They are few while tasks are added, so that an addition rarely has to cancel a request,
# which costs a connection, and double while none is.
EACH_WAIT = 0.0001  # for each awaited task
FIRST_WAIT = 0.01
SHORT_WAIT = 0.1  # an addition cancels requests that wait longer
LONG_WAIT = 30.0
ALL_WAIT = 1.0  # for all tasks together, if they are more than a request may name
LEAST_WAIT = 0.05  # for one of these requests


class Awaited:
    """A task that some callers wait for."""

    def __init__(self, ended: Event) -> None:
        self.ended = ended
        self.callers = 0
        self.outcome: Union[Dict[str, Any], BaseException, None] = None  # the task after its end, or the error


class Results:
    """The tasks that a client waits for. One thread asks for all of them, and exists only while there is one."""

    def __init__(self, caller: Caller, post: Callable[..., Mapping[str, Any]], log: logging.Logger) -> None:
        self.caller, self.post, self.log = caller, post, log
        self.lock = threading.Lock()
        self.awaited: Dict[str, Awaited] = {}  # by id, in the order in which they are asked for
        self.running = False  # whether the thread exists
        self.asking = False  # whether a request is under way
        self.added = False  # whether a task was added since it was sent
        self.wait = 0.0  # of that request
        self.cancel = Event(caller.clock)  # ends the request or the pause that is under way

    def result(self, task_id: str, timeout: Timeout) -> Any:
        """Client.result."""
        seconds = seconds_of(timeout)
        awaited = self._join(task_id)
        try:
            if not awaited.ended.wait(seconds):
                raise TimeoutError(f"task {task_id} has not ended within {seconds:g} s")
        finally:
            self._leave(task_id, awaited)
        return self._outcome(awaited)

    async def result_async(self, task_id: str, timeout: Timeout) -> Any:
        """AsyncClient.result. It needs no thread."""
        loop, seconds = asyncio.get_running_loop(), seconds_of(timeout)
        over: "asyncio.Future[bool]" = loop.create_future()

        def wake(ended: bool) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed; the other callers must be woken all the same
                loop.call_soon_threadsafe(settle, over, ended)

        awaited = self._join(task_id)
        forget = awaited.ended.then(lambda: wake(True))
        timer = None if seconds is None else self.caller.clock.call_later(seconds, lambda: wake(False))
        try:
            if not await over:
                raise TimeoutError(f"task {task_id} has not ended within {seconds:g} s")
        finally:
            if timer is not None:
                timer.cancel()
            forget()
            self._leave(task_id, awaited)
        return self._outcome(awaited)

    def _outcome(self, awaited: Awaited) -> Any:
        """The output of a task that has ended."""
        outcome: Any = awaited.outcome
        if isinstance(outcome, BaseException):
            raise outcome.with_traceback(None)  # other threads raise it too, and would add to one traceback
        if outcome["state"] != "SUCCEEDED":
            raise TaskFailed(outcome)
        return outcome.get("output")

    def close(self) -> None:
        """Fails all callers. The client is marked as closed before, so the next request fails those that are added meanwhile."""
        with self.lock:
            ids = list(self.awaited)
        self._end({task_id: ClosedError("the client is closed") for task_id in ids})
        self.cancel.set()

    def _join(self, task_id: str) -> Awaited:
        """Adds a caller that waits for a task."""
        if not ID.fullmatch(task_id):  # the server would refuse the whole request, with the ids of the others
            raise ConfigurationError(f"{task_id!r} is not the id of a task")
        clock, replaced = self.caller.clock, None
        with self.lock:
            if not self.running:
                clock.spawn(self._run, "lubdub-results")
                self.running = True
            awaited = self.awaited.get(task_id)
            if awaited is None:
                awaited = self.awaited[task_id] = Awaited(Event(clock))
                self.added = True
                replaced = self.cancel if self.asking and self.wait > SHORT_WAIT else None
            awaited.callers += 1
        if replaced is not None:
            replaced.set()
        return awaited

    def _leave(self, task_id: str, awaited: Awaited) -> None:
        """Removes a caller, and the task if no other caller waits for it. The last one ends the request."""
        with self.lock:
            awaited.callers -= 1
            if awaited.callers or self.awaited.get(task_id) is not awaited:
                return
            del self.awaited[task_id]
            last = None if self.awaited else self.cancel
        if last is not None:
            last.set()

    def _end(self, outcomes: Mapping[str, Union[Dict[str, Any], BaseException]]) -> int:
        """Gives the callers their outcomes; returns how many tasks were awaited."""
        ended: List[Awaited] = []
        with self.lock:
            for task_id, outcome in outcomes.items():
                awaited = self.awaited.pop(task_id, None)
                if awaited is not None:
                    awaited.outcome = outcome
                    ended.append(awaited)
        for awaited in ended:
            awaited.ended.set()
        return len(ended)

    def _run(self) -> None:
        try:
            self._ask()
        except BaseException as error:  # the callers would wait forever
            with self.lock:
                self.running, self.asking = False, False
                ids = list(self.awaited)
            self._end({task_id: error for task_id in ids})
            raise

    def _ask(self) -> None:
        """Asks for the awaited tasks until no task is awaited."""
        clock, outage, failures = self.caller.clock, Outage(self.caller.clock, self.log), 0
        while True:
            ids, wait, cancel = self._next()
            if not ids:
                return
            began = clock.now()
            pause = 0.0
            try:
                body = {"taskIds": ids, "waitMs": int(wait * 1000)}
                outcomes = outcomes_of(self.post(PATH, body, tries=1, waits=wait, cancel=cancel))
                settled = self._end(outcomes)
                outage.answered("results")
                took = clock.now() - began
                if not settled and took < wait / 2:  # a server that does not wait is not called without a pause
                    pause = backoff(failures, MAX_PAUSE)
                    failures += 1
                else:
                    failures = 0
                    if len(outcomes) < MAX_TASKS:  # many ends share an answer
                        pause = self._shortened() - took
            except LubdubError as error:
                if cancel.is_set() and not isinstance(error, ApiError):
                    continue
                if not may_retry(error):
                    self._end({task_id: error for task_id in ids})
                    continue
                outage.failed("results", error)
                pause = wait_of(error) + backoff(failures, MAX_PAUSE)
                failures += 1
            if pause > 0:
                self._pause(pause)

    def _shortened(self) -> float:
        """The wait after additions."""
        return min(len(self.awaited) * EACH_WAIT, SHORT_WAIT)

    def _next(self) -> Tuple[List[str], float, Event]:
        """The ids for the next request, how long it waits, and what cancels it. No ids: the thread ends."""
        with self.lock:
            ids = list(itertools.islice(self.awaited, MAX_IDS))
            self.wait = max(self._shortened(), FIRST_WAIT) if self.added else min(2 * self.wait, LONG_WAIT)
            if len(self.awaited) > MAX_IDS:
                self.wait = min(self.wait, max(ALL_WAIT * MAX_IDS / len(self.awaited), LEAST_WAIT))
                for task_id in ids:
                    self.awaited[task_id] = self.awaited.pop(task_id)
            self.added = False
            self.running = self.asking = bool(ids)
            self.cancel = Event(self.caller.clock)
            return ids, self.wait, self.cancel

    def _pause(self, seconds: float) -> None:
        """Waits before a retry, unless no caller waits any more. An addition does not shorten it."""
        with self.lock:
            self.asking = False
            self.cancel = Event(self.caller.clock)
            if not self.awaited:
                return
        wait_any(seconds, self.caller.closing, self.cancel)


def seconds_of(timeout: Timeout) -> Optional[float]:
    """A timeout in seconds; None: no limit."""
    return timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout


def outcomes_of(answer: Mapping[str, Any]) -> Dict[str, Union[Dict[str, Any], BaseException]]:
    """The outcomes in an answer, by the ids of the tasks."""
    tasks, missing = answer.get("tasks"), answer.get("notFound")
    if not isinstance(tasks, list) or not isinstance(missing, list):
        raise AnswerError(f"POST {PATH}: the answer has no lists of tasks")
    found: Dict[str, Union[Dict[str, Any], BaseException]] = {}
    for task in objects(tasks):  # pyright: ignore[reportUnknownArgumentType]
        if not text(task.get("state")):
            raise AnswerError(f"POST {PATH}: a task has no state")
        found[text(task.get("taskId"))] = task
    for task_id in map(text, missing):  # pyright: ignore[reportUnknownArgumentType]
        message = f"no task {task_id}; finished tasks are removed at the end of their retention"
        found[task_id] = TaskNotFound(f"POST {PATH}", 404, "task_not_found", message)
    return found
