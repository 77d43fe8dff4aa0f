"""A task that runs here: the argument of a worker's handlers, and the handle of a tracked task."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Union, cast

from . import types as t
from ._answers import plain, seconds, seconds_between, text, whole
from ._beats import Accepted, BeatEntry
from ._call import Call, Caller, path_of, write
from ._clock import Event
from ._complete import completion, persist, stamp
from ._endpoints import Endpoints
from ._entries import Report, encoded, last_beat
from ._exchange import Exchange
from .ends import Cancelled, ClientClosed, End, LeaseEnded, Stopping, Stuck, TaskTimeout, end_of, end_of_error
from .errors import ApiError, ConfigurationError, EndedError, ForkedError, LubdubError, OutputError
from .failures import Failure, Snooze, Stopped, cut, task_error
from .metrics import Metrics

Lease = Literal["patient", "strict"]
MAX_MESSAGE = 1024  # bytes per message
LEAST_TIMEOUT = 3.0  # seconds; a shorter timeout leaves no room for one Retry-After


class Holder:
    """Sends heartbeats for attempts: a client's batch, or a worker."""

    def hold(self, entry: BeatEntry) -> None:
        """Starts heartbeats."""

    def report(self, key: str, now: bool = False) -> None:
        """An attempt's report has changed, and the next heartbeat includes it; now: send it within a second."""

    def release(self, key: str, ending: bool = False) -> int:
        """Stops heartbeats; returns the acknowledged version of the report, or -1. ending: the completion is sent from now on."""
        raise NotImplementedError

    def settled(self, key: str) -> None:
        """The completion was answered or abandoned."""

    def drop(self, key: str) -> None:
        """Stops heartbeats without waiting for a request in flight."""

    def lost(self, attempt: "Task", cause: End) -> None:
        """An attempt is no longer ours."""

    # Set when nothing more may be sent about its attempts; None: never.
    over: Optional[Event] = None

    def worker_id(self) -> str:
        """The id of the worker; "": none."""
        return ""

    def token(self) -> str:
        """A token for the callbacks of its attempts; "": use the attempt's own."""
        return ""

    def exchange(self) -> Optional[Exchange]:
        """Sends completions together; None: each is sent on its own."""
        return None


class Task:
    """A task that runs here, in one attempt: heartbeats are sent until the attempt is completed (done, fail, stopped) or abandoned
    (abandon). Any number of threads may use it."""

    def __init__(
        self,
        envelope: Mapping[str, Any],
        caller: Caller,
        endpoints: Endpoints,
        holder: Holder,
        lease: Lease,
        metrics: Metrics,
        log: logging.Logger,
        worker_timeout: float = 0,
        limit: float = 0,
    ) -> None:
        if (
            not plain(envelope.get("taskId"))
            or not plain(envelope.get("taskToken"))
            or whole(envelope.get("attempt")) < 1
        ):
            raise ConfigurationError(
                "this is not a task envelope: it needs taskId, attempt and taskToken, as creations and claims "
                "return them"
            )
        # The envelope of the task: see types.TaskEnvelope.
        self.envelope: t.TaskEnvelope = cast(t.TaskEnvelope, dict(envelope))
        self.task_id: str = str(envelope["taskId"])
        self.attempt: int = int(envelope["attempt"])
        # Sent as output if a with block ends without done().
        self.output: Any = None
        # The answer to the completion, with willRetry and nextAttempt. None before.
        self.answer: Optional[t.CompletedResponse] = None
        self._caller, self._endpoints, self._holder, self._lease, self._metrics, self._log = (
            caller,
            endpoints,
            holder,
            lease,
            metrics,
            log,
        )
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._phase: Literal["running", "ending", "over"] = "running"
        self._token = str(envelope["taskToken"])
        self._expires: Optional[float] = None
        lasts = seconds_between(envelope.get("enqueuedAt"), envelope.get("tokenExpiresAt"))
        if lasts > 0:  # by our own clock, since the two may differ
            self._expires = caller.clock.now() + lasts
        interval = seconds(envelope.get("heartbeatIntervalMs")) or 30.0
        own = seconds(envelope.get("heartbeatTimeoutMs"))
        self._own = own > 0 or not worker_timeout
        self._timeout = own or worker_timeout or 3 * interval
        if self._own and self._timeout < 2 * interval:
            raise ConfigurationError(
                f"task {self.task_id}: a heartbeat timeout of {self._timeout:g} s is less than twice its interval of {interval:g} s, so "
                "that one lost heartbeat would end it; create it with a longer timeout"
            )
        if self._own and self._timeout < LEAST_TIMEOUT:
            log.warning(
                "a heartbeat timeout of %g s leaves no room for one Retry-After: task %s", self._timeout, self.task_id
            )
        self._entry = BeatEntry(
            self.task_id, self.attempt, self._token, interval if self._own or not worker_timeout else 0, self._timeout
        )
        self._entry.limit = limit
        self._accepted = 0.0  # when the last accepted heartbeat was sent
        self.first_answer: Optional[float] = None  # when the first accepted heartbeat was answered
        self._cause: Optional[End] = None  # why it is no longer ours, or is to end
        self._cancel_requested = False  # also if another cause has replaced that one
        self._event = Event(caller.clock)  # set together with the cause
        self._on_end: List[Callable[[End], None]] = []
        self.moved = caller.clock.now()  # when progress or a checkpoint was last reported

    def __repr__(self) -> str:
        return f"<lubdub.Task {self._entry.key} {self._phase}>"

    # Properties and the end of the work.

    @property
    def payload(self) -> Any:
        """The payload that the creator set."""
        return self.envelope.get("payload")

    @property
    def type(self) -> str:
        """The task's type; "": none."""
        return str(self.envelope.get("type") or "")

    @property
    def traceparent(self) -> str:
        """The W3C trace context of the task; "": none."""
        return str(self.envelope.get("traceparent") or "")

    @property
    def last_progress(self) -> Optional[t.Progress]:
        """The last progress that the previous attempt reported; None: none."""
        last: Optional[t.Progress] = self.envelope.get("lastProgress")
        if last is None or (last.get("progressPct") is None and last.get("message") is None):
            return None  # or there are only checkpoints
        return last

    @property
    def last_checkpoint(self) -> Any:
        """The last checkpoint of the task, whichever attempt set it; None: none."""
        last: Optional[t.Progress] = self.envelope.get("lastProgress")
        return last.get("details") if last is not None else None

    @property
    def cause(self) -> Optional[End]:
        """Why the work must end; None: it may continue. A strict lease is checked first, since nothing else may have run since the host
        slept."""
        self._check_process()
        self._look()
        return self._cause

    @property
    def over(self) -> bool:
        """Whether it is completed, abandoned, or no longer ours."""
        return self._phase == "over" or self._over()

    @property
    def cancelled(self) -> bool:
        """Whether cancellation was requested."""
        return isinstance(self.cause, Cancelled)

    def check(self) -> None:
        """Raises the cause if the work must end."""
        cause = self.cause
        if cause is not None:
            raise cause

    def wait(self, seconds: Optional[float] = None) -> None:
        """Sleeps for some seconds. If the work must end, it returns early and raises the cause, as check does."""
        self._check_process()
        self._event.wait(seconds)
        self.check()

    def on_end(self, call: Callable[[End], None]) -> None:
        """Calls back, in a thread of the SDK, when the work must end, or at once if it already must. The callback must not block."""
        with self._lock:
            if self._cause is None:
                self._on_end.append(call)
                return
        call(self._cause)

    # Progress and completion.

    def progress(self, pct: float, message: Optional[str] = None, *, now: bool = False) -> None:
        """Reports progress as a percentage, 0 to 100, and a message of at most 1,024 bytes; more is cut. It replaces progress that was not
        sent yet, is sent with the next heartbeat, and never blocks; now: send it within a second. Raises the cause if the attempt is no
        longer ours."""
        self._check_process()
        value: Any = pct
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100:
            raise ConfigurationError(f"progress {pct!r} is not between 0 and 100")
        exact, text = (
            int(pct) if float(pct).is_integer() else float(pct),
            cut(message, MAX_MESSAGE) if message else None,
        )
        self._report(lambda report: report.with_progress(exact, text), now)

    def checkpoint(self, value: Any) -> None:
        """Sets what the next attempt needs in order to continue where this one ends: any JSON but None, of at most 16 KiB. The next attempt
        has it as last_checkpoint. It is encoded at once, so later changes of the value do not matter. It replaces a checkpoint that was not
        sent yet, is sent with the next heartbeat, and never blocks. Raises a ConfigurationError for a value that cannot be sent, and the
        cause if the attempt is no longer ours."""
        self._check_process()
        details = encoded(value)
        self._report(lambda report: report.with_checkpoint(details))

    def _report(self, change: Callable[[Report], Report], now: bool = False) -> None:
        """Changes what the next heartbeat reports."""
        self._look()
        with self._lock:
            self._check_ours()
            self._entry.report = change(self._entry.report)
            self.moved = self._caller.clock.now()
        self._holder.report(self._entry.key, now)

    def done(self, output: Any = None) -> t.CompletedResponse:
        """Completes the attempt as done, with any JSON as its output. It waits for the answer, and retries with the same body while no
        server answers, at most until the attempt's token expires."""
        return self.complete(
            {"outcome": "SUCCEEDED", "output": output} if output is not None else {"outcome": "SUCCEEDED"}
        )

    def fail(self, error: Union[BaseException, str]) -> t.CompletedResponse:
        """Completes the attempt as failed. A Failure sets the category; every other error is USER_CODE. Cancelled, Stopped, and an
        asyncio.CancelledError after a cancel have the outcome CANCELLED; without a cancel, the reason of a Cancelled becomes the task's
        error. A Snooze returns the task to its queue. It waits as done does."""
        if isinstance(error, str):
            error = Failure(error)
        if isinstance(error, Stopped):
            return self.stopped(error.phase, error.partial)
        if isinstance(error, Snooze):
            return self.complete({"outcome": "SNOOZED", "delayMs": error.delay_ms})
        if isinstance(error, Cancelled) and error.reason and not self._cancel_requested:
            return self.complete({"outcome": "CANCELLED", "error": task_error(Failure(str(error.reason), "CANCELLED"))})
        cancelled = isinstance(self._cause, Cancelled)
        if isinstance(error, Cancelled) or (cancelled and isinstance(error, asyncio.CancelledError)):
            return self.stopped()
        return self.complete({"outcome": "FAILED", "error": task_error(error)})

    def stopped(self, phase: str = "", partial: Any = None) -> t.CompletedResponse:
        """Completes the attempt as stopped after a cancel: in which phase, and the partial progress, as any JSON. It waits as done does."""
        body: Dict[str, Any] = {"outcome": "CANCELLED"}
        if phase:
            body["cancelledDuringPhase"] = cut(phase, 256)
        if partial is not None:
            body["partialProgress"] = partial
        return self.complete(body)

    def complete(self, body: Mapping[str, Any], cancel: Optional[Event] = None) -> t.CompletedResponse:
        """Sends a completion, types.CompletedRequest; attempt, worker and time are filled in. From then on no heartbeat is sent. If the
        attempt is no longer ours nothing is sent, and the cause is raised; so is a server's refusal."""
        self._check_process()
        filled = {"attempt": self.attempt, **body, "completedAt": stamp(self._caller.clock.wall())}
        worker = self._holder.worker_id()
        if worker:
            filled["workerId"] = worker
        written = completion(filled)
        self._look()
        with self._lock:
            ours = self._phase == "running" and (self._cause is None or not self._over())
            if ours:
                self._phase = "ending"
        if not ours:
            self.abandon()
            raise self._cause if self._cause is not None and self._over() else EndedError()
        self._release(True)
        try:
            self.answer = cast(t.CompletedResponse, self._send(written, cancel or self._holder.over))
        except ApiError as error:
            self._metrics.refused(error.code)
            cause = end_of_error(error)
            if cause is None:
                raise
            self._end(cause, final=True)
            raise cause from error
        finally:
            self._holder.settled(self._entry.key)
            with self._lock:
                self._phase = "over"
        self._metrics.completed(str(filled["outcome"]))
        return self.answer

    def leave(self, cause: End) -> None:
        """Ends the work and sends nothing more except heartbeats: the worker's deregistration returns the attempt to the queue."""
        self._end(cause)
        with self._lock:
            self._phase = "over"

    def abandon(self) -> None:
        """Stops heartbeats and sends nothing: the server will declare the attempt lost. After a completion it has no effect."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            begun, self._phase = self._phase != "running", "over" if self._phase == "running" else self._phase
        if not begun:
            self._release()

    # The start.

    def start(self, cancel: Optional[Event] = None) -> None:
        """Reports the start until it is answered, unless the claim has started the attempt; then starts heartbeats."""
        if self.envelope.get("state") == "RUNNING":
            self._accepted = self._caller.clock.now()
            self._holder.hold(self._entry)
            return
        body: Dict[str, Any] = {"attempt": self.attempt, "startedAt": stamp(self._caller.clock.wall())}
        worker = self._holder.worker_id()
        if worker:
            body["workerId"] = worker
        call = Call(
            "POST",
            path_of("/v1/tasks/{}/started", (self.task_id,)),
            body=write(body),
            endpoints=self._endpoints,
            token=self._token,
        )
        try:
            answer, self._accepted = persist(self._caller, call, self._expires, self._timeout, cancel)
        except ApiError as error:
            cause = end_of_error(error)
            if cause is None:
                raise
            raise cause from error
        if answer.get("shouldCancel"):
            self.cancel_for(text(answer.get("cancelReason")))
        self._holder.hold(self._entry)

    def _send(self, written: bytes, cancel: Optional[Event]) -> Dict[str, Any]:
        """Sends the report if no heartbeat has, and then the completion."""
        if self._entry.unsent:
            try:
                self._persist(last_beat(self._entry, self._token, self._endpoints), cancel)
            except ApiError as error:
                if end_of_error(error) is not None:
                    raise
        call = Call(
            "POST",
            path_of("/v1/tasks/{}/completed", (self.task_id,)),
            body=written,
            endpoints=self._endpoints,
            token=self._token,
        )
        holder = self._holder

        def instead() -> Optional[Dict[str, Any]]:
            exchange = holder.exchange()
            if exchange is None:
                return None
            return exchange.complete(self._endpoints, holder.worker_id(), holder.token(), self.task_id, written, cancel)

        return self._persist(call, cancel, instead)

    def _persist(
        self, call: Call, cancel: Optional[Event], instead: Optional[Callable[[], Optional[Dict[str, Any]]]] = None
    ) -> Dict[str, Any]:
        """Retries a call until it is answered."""
        try:
            return persist(self._caller, call, self._expires, self._timeout, cancel, instead)[0]
        except ApiError as error:
            if error.status != 401 or not self._holder.token():
                raise
            call.token = self._holder.token()  # valid for the call as well, and newer
            return persist(self._caller, call, self._expires, self._timeout, cancel)[0]

    def _release(self, ending: bool = False) -> None:
        self._entry.deliver(self._holder.release(self._entry.key, ending))

    # Results of heartbeats.

    def accepted(self, beat: Accepted) -> None:
        """A heartbeat was accepted."""
        with self._lock:
            now = self._caller.clock.now()
            self.first_answer = now if self.first_answer is None else self.first_answer
            if beat.timeout and not self._own:
                self._timeout = beat.timeout
            left = max(0.0, (self._timeout - (now - self._accepted)) / self._timeout)
            self._accepted = max(self._accepted, beat.sent)
            self._entry.deliver(beat.version)
            if beat.token:
                self._token = beat.token
                self._expires = beat.sent + beat.expires if beat.expires else None
        self._metrics.lease_left(left)

    def cancel_for(self, reason: str) -> None:
        """Cancellation was requested."""
        self._cancel_requested = True
        self._end(Cancelled(reason))

    def lost_by(self, code: str, fields: Mapping[str, Any]) -> None:
        """A refusal reports that the attempt is no longer ours, or the heartbeat process that it has completed it."""
        self.answer = fields.get("answer") or self.answer
        self.end(end_of(code, fields) or end_of("task_already_terminal", {"reason": code}))

    def end(self, cause: Optional[End]) -> None:
        """Ends the work."""
        if cause is not None:
            self._end(cause)

    def look(self) -> Optional[float]:
        """Ends the work if the lease has expired; otherwise returns the seconds until the next check, if one is needed."""
        self._look()
        if self._lease != "strict" or self._phase != "running" or self._over():
            return None
        return max(0.001, self._accepted + self._timeout - self._caller.clock.now())

    def _look(self) -> None:
        if self._lease != "strict" or self._phase != "running" or not self._accepted or self._over():
            return
        silent = self._caller.clock.now() - self._accepted
        if silent >= self._timeout:
            self._holder.drop(self._entry.key)
            self._end(LeaseEnded(silent))

    def _over(self) -> bool:
        """Whether the cause leaves nothing to send. Cancelled, and a decision of the worker, still need a completion."""
        return self._cause is not None and not isinstance(
            self._cause, (Cancelled, Stopping, Stuck, TaskTimeout, ClientClosed)
        )

    def _end(self, cause: End, final: bool = False) -> None:
        with self._lock:
            if (self._phase != "running" and not final) or self._over():
                return
            if self._cause is None or not isinstance(cause, (Cancelled, Stopping)):
                self._cause = cause
            calls, self._on_end = self._on_end, []
            lost = self._over()
        self._event.set()
        if lost:
            self._holder.lost(self, cause)
        for call in calls:
            try:
                call(cause)
            except Exception:
                self._log.exception("a callback at the end of task %s failed", self.task_id)

    def _check_ours(self) -> None:
        if self._cause is not None and self._over():
            raise self._cause
        if self._phase != "running":
            raise EndedError()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(
                f"task {self.task_id} gets its heartbeats from process {self._pid}, and this is a fork of it, "
                f"{os.getpid()}: report and complete there, for example by a multiprocessing queue"
            )

    # The context manager.

    def close(self, error: Optional[BaseException]) -> None:
        """Completes the attempt unless that was done: with output if there is no error."""
        if os.getpid() != self._pid or self._phase != "running":
            return
        try:
            if error is not None:
                self.fail(error)
                return
            try:
                self.done(self.output)
            except OutputError as wrong:
                self.fail(Failure(str(wrong), retryable=False))
                raise
        except LubdubError:
            if error is None:
                raise
            self._log.warning("the failure of task %s could not be reported", self.task_id, exc_info=True)


__all__ = ["Task", "Holder", "Lease"]
