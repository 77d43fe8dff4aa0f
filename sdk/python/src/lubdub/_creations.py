"""The calls that create tasks."""

from __future__ import annotations

import datetime
import json
import logging
import re
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Union, cast

from . import types as t
from ._answers import objects, seconds
from ._call import CANCEL, Caller, write
from ._calls import Calls
from ._clock import MAX_PAUSE, Delay, backoff, milliseconds, wait_any
from ._complete import stamp
from .errors import MAX_RETRY_AFTER, AnswerError, ConfigurationError, LubdubError, refusal

# Bounds of a batch; the server accepts 1,000 creations and 4 MiB.
MAX_TASKS = 1000
MAX_BYTES = 2 << 20
TRACEPARENT = re.compile("[0-9a-f-]{1,512}")  # what a header may have; a server ignores one that is not valid


class NewTask(NamedTuple):
    """A task for enqueue_many.

    payload: any value that json can encode, also with dataclasses in it; None: no payload.
    delay: how long the task waits, from its creation on by the server's clock, before a worker may claim it: a timedelta, or seconds, at
    most 366 days. Until then it is SCHEDULED.
    run_at: the same as a time. Prefer it to not_before, which is another name of it.
    deadline: when the task fails if it has not finished. Times without a time zone are local.
    idempotency_key: makes retries of this creation safe for 24 hours, also from other processes; None: one is generated, which makes the
    client's retries safe.
    traceparent: the W3C trace context that the task belongs to.
    more: any other fields of a creation, with the names of the API.
    """

    queue: str
    type: str
    payload: Any = None
    delay: Delay = 0
    not_before: Optional[datetime.datetime] = None
    deadline: Optional[datetime.datetime] = None
    idempotency_key: Optional[str] = None
    traceparent: Optional[str] = None
    more: Optional[t.CreateTaskRequest] = None
    run_at: Optional[datetime.datetime] = None

    def item(self) -> Dict[str, Any]:
        """The creation."""
        if not self.queue:
            raise ConfigurationError("a task that waits needs a queue; dispatch() creates one without a queue")
        more: Dict[str, Any] = dict(self.more or {})
        try:
            fields = {
                "payload": self.payload,
                "delayMs": milliseconds(self.delay) or None,
                "runAt": time_of(self.run_at),
                "notBefore": time_of(self.not_before),
                "deadline": time_of(self.deadline),
                "traceparent": self.traceparent,
                "idempotencyKey": self.idempotency_key or more.get("idempotencyKey") or uuid.uuid4().hex,
            }
        except (AttributeError, OSError, OverflowError, TypeError, ValueError) as error:
            raise ConfigurationError(f"a time of the task is not valid: {error}") from None
        given = {name: value for name, value in fields.items() if value is not None}
        return {**more, "queue": self.queue, "type": self.type, **given}


def time_of(at: Optional[datetime.datetime]) -> Optional[str]:
    return None if at is None else stamp(at.timestamp())


class Enqueued(NamedTuple):
    """The result of one task of enqueue_many: exactly one of the two is set. The error is an ApiError if the server refused the task."""

    task: Optional[t.Task] = None
    error: Optional[LubdubError] = None


class Creations(Calls):
    """The calls that create tasks."""

    caller: Caller
    log: logging.Logger
    traceparent: Optional[Callable[[], Optional[str]]]
    _trace_failed = False

    def create_task(
        self,
        body: Optional[t.CreateTaskRequest] = None,
        *,
        idempotency_key: Optional[str] = None,
        traceparent: Optional[str] = None,
    ) -> Union[t.TaskEnvelope, t.Task]:
        """Creates a task. Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, which the caller
        delivers to a worker. With a queue the task waits, QUEUED, or SCHEDULED until its runAt or for its delayMs. Roles: submitter,
        dispatcher, admin."""
        return super().create_task(
            body, idempotency_key=idempotency_key, traceparent=self._trace(traceparent, [body or {}])
        )

    def _trace(self, given: Optional[str], tasks: Iterable[Mapping[str, Any]]) -> Optional[str]:
        """The trace context of the tasks that have none. It goes in the header, which is no part of the request that an idempotency key names.
        Tracing that fails must not make the creation fail."""
        if self.traceparent is None or given or all(one.get("traceparent") for one in tasks):
            return given
        try:
            found = self.traceparent()
            return found if found and TRACEPARENT.fullmatch(found) else None
        except Exception:
            if not self._trace_failed:
                self._trace_failed = True
                self.log.exception("traceparent failed; tasks are created without trace context")
            return None

    def create_tasks(
        self,
        body: t.CreateTasksRequest,
        *,
        traceparent: Optional[str] = None,
    ) -> t.CreateTasksResponse:
        """Makes up to 1,000 creations, each with its own result, in order. Those without an idempotencyKey are given one, so that retries
        are safe. Items that are answered 429 or 503 are created again, as often as the client's tries allow. created() turns a result into
        an envelope or a task, or raises its error."""
        tasks: List[Any] = [
            {**one, "idempotencyKey": one.get("idempotencyKey") or uuid.uuid4().hex} for one in body["tasks"]
        ]
        traceparent = self._trace(traceparent, tasks)
        answer = super().create_tasks(cast(t.CreateTasksRequest, {**body, "tasks": tasks}), traceparent=traceparent)
        results = objects(answer.get("results"))
        if len(results) != len(tasks):
            raise AnswerError(f"POST /v1/tasks:batch: expected one result for each of {len(tasks)} creations")
        for tried in range(self.caller.tries - 1):
            again = [number for number, result in enumerate(results) if result.get("status") in (429, 503)]
            wait = max(
                (min(seconds(results[number].get("retryAfterMs")), MAX_RETRY_AFTER) for number in again), default=0.0
            )
            if not again or wait_any(wait + backoff(tried, MAX_PAUSE), self.caller.closing, CANCEL.get()):
                break
            repeated = {**body, "tasks": [tasks[number] for number in again]}
            try:
                found = (
                    super().create_tasks(cast(t.CreateTasksRequest, repeated), traceparent=traceparent).get("results")
                )
            except LubdubError as error:  # the results of the others must not be lost
                self.log.warning("%d of %d creations could not be retried: %s", len(again), len(tasks), error)
                break
            for number, result in zip(again, objects(found)):
                results[number] = result
        return cast(t.CreateTasksResponse, {**answer, "results": results})

    def enqueue(
        self,
        queue: str,
        type: str,
        payload: Any = None,
        *,
        delay: Delay = 0,
        run_at: Optional[datetime.datetime] = None,
        not_before: Optional[datetime.datetime] = None,
        deadline: Optional[datetime.datetime] = None,
        idempotency_key: Optional[str] = None,
        traceparent: Optional[str] = None,
        more: Optional[t.CreateTaskRequest] = None,
    ) -> t.Task:
        """Creates a task of a type that waits in a queue. NewTask describes the parameters. After NoAnswer or a status of 503 the task may
        exist all the same: to repeat such a call safely, give an idempotency_key."""
        item = NewTask(queue, type, payload, delay, not_before, deadline, idempotency_key, None, more, run_at).item()
        key = item.pop("idempotencyKey")
        body = cast(t.CreateTaskRequest, item)
        return cast(t.Task, self.create_task(body, idempotency_key=key, traceparent=traceparent))

    def enqueue_many(self, tasks: Iterable[NewTask]) -> Iterator[Enqueued]:
        """Creates any number of tasks, in batches of at most 1,000, and yields one result for each, in order: the task, or the error, as with
        enqueue. Nothing is created until the results are read. A batch is sent when it is full or the tasks end; what remains of it when
        the loop ends early has been created too. Tasks that are answered 429 or 503 are created again as by create_tasks. Once the client
        is closed, the loop ends after the batch that was under way."""
        batch: List[Union[Dict[str, Any], LubdubError]] = []  # an error is why a task cannot be sent
        size = 0
        for task in tasks:
            one: Union[Dict[str, Any], LubdubError]
            try:
                text = write(task.item())
                one, bytes = json.loads(text), len(text)  # a copy: the caller may change the payload while it waits
            except ConfigurationError as error:
                one, bytes = error, 0
            if size + bytes > MAX_BYTES:
                yield from self._created(batch)
                batch, size = [], 0
            batch.append(one)
            size += bytes
            if len(batch) == MAX_TASKS:
                yield from self._created(batch)
                batch, size = [], 0
            if not batch and self.caller.closing.is_set():
                return
        yield from self._created(batch)

    def _created(self, batch: List[Union[Dict[str, Any], LubdubError]]) -> Iterator[Enqueued]:
        items = [one for one in batch if not isinstance(one, LubdubError)]
        results: Iterator[Any] = iter(())
        failed: Optional[LubdubError] = None
        try:
            if items:
                results = iter(self.create_tasks(cast(t.CreateTasksRequest, {"tasks": items}))["results"])
        except LubdubError as error:
            failed = error
        for one in batch:
            error = one if isinstance(one, LubdubError) else failed
            if error is not None:
                yield Enqueued(error=error)
                continue
            try:
                yield Enqueued(task=cast(t.Task, created(next(results))))
            except LubdubError as refused:
                yield Enqueued(error=refused)

    def dispatch(
        self,
        body: t.CreateTaskRequest,
        *,
        idempotency_key: Optional[str] = None,
        traceparent: Optional[str] = None,
    ) -> t.TaskEnvelope:
        """create_task for a task that is dispatched directly: hand its envelope to the program that does the work, and track it there."""
        if body.get("queue"):
            raise ConfigurationError("a task with a queue waits for a worker's claim; enqueue() creates it")
        return cast(t.TaskEnvelope, self.create_task(body, idempotency_key=idempotency_key, traceparent=traceparent))


def created(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """What one result of create_tasks created: an envelope or a task; a refusal is raised."""
    found = result.get("status")
    status = found if isinstance(found, int) else 0
    if status // 100 == 2:
        return result
    raise refusal("POST /v1/tasks:batch", status, {}, write(dict(result)))
