"""The handle of an attempt that is tracked."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Union, cast

from . import types as t
from ._answers import plain, seconds, seconds_between, text, whole
from ._beats import Accepted, Beaten
from ._call import Call, Caller, path_of, write
from ._clock import Event
from ._complete import completion, persist, stamp
from ._places import Endpoints
from .ends import Cancelled, ClientClosed, End, LeaseEnded, Stopping, Stuck, TaskTimeout, end_of, end_of_error
from .errors import ApiError, ConfigurationError, EndedError, ForkedError, LubdubError, OutputError
from .failures import Failure, Stopped, cut, task_error
from .metrics import Metrics

Lease = Literal["patient", "strict"]
MAX_MESSAGE = 1024  # bytes of a message
LEAST_TIMEOUT = 3.0  # seconds: less leaves no room for one Retry-After


class Holder:
    """Beats for attempts: a client's batch, or a worker."""

    def hold(self, entry: Beaten) -> None:
        """Begins to beat."""

    def progress(self, key: str, pct: Optional[float], message: Optional[str], version: int, now: bool = False) -> None:
        """Is to be said with the next beat."""

    def release(self, key: str, ending: bool = False) -> int:
        """Ends the beats; returns the acknowledged version of the progress, or -1. ending: the completion is sent from now on."""
        raise NotImplementedError

    def settled(self, key: str) -> None:
        """The completion is answered, or given up."""

    def drop(self, key: str) -> None:
        """Sends nothing more, without waiting for what is under way."""

    # Happens when nothing more is to be sent about what it holds; None: that never comes.
    over: Optional[Event] = None

    def worker_id(self) -> str:
        """The worker's; "": there is none."""
        return ""

    def token(self) -> str:
        """Opens the callbacks of what is held; "": the attempt's own does."""
        return ""


class Attempt:
    """An attempt that is tracked: beats are sent for it until it is completed (done, fail, stopped) or given up (abandon). It is for
    any number of threads at once."""

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
                "this is no envelope of a task: it needs taskId, attempt and taskToken, as creations and claims "
                "answer them"
            )
        # What the server said of the task: see types.TaskEnvelope.
        self.envelope: t.TaskEnvelope = cast(t.TaskEnvelope, dict(envelope))
        self.task_id: str = str(envelope["taskId"])
        self.attempt: int = int(envelope["attempt"])
        # What is sent as output where a with block ends without done().
        self.output: Any = None
        # The answer to the completion; willRetry and nextAttempt are in it. None before.
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
                "that one lost beat would end it; give it more at its creation"
            )
        if self._own and self._timeout < LEAST_TIMEOUT:
            log.warning(
                "a heartbeat timeout of %g s leaves no room for one Retry-After: task %s", self._timeout, self.task_id
            )
        self._beaten = Beaten(
            self.task_id, self.attempt, self._token, interval if self._own or not worker_timeout else 0, self._timeout
        )
        self._beaten.limit = limit
        self._accepted = 0.0  # when the last beat left that was accepted
        self._pct: Optional[float] = None
        self._message: Optional[str] = None
        self._version = self._delivered = 0
        self._cause: Optional[End] = None  # why it is not ours any more, or is to end
        self._event = Event(caller.clock)  # happens with the cause
        self._on_end: List[Callable[[End], None]] = []
        self.moved = caller.clock.now()  # when progress was reported last

    def __repr__(self) -> str:
        return f"<lubdub.Attempt {self._beaten.key} {self._phase}>"

    # What it is told.

    @property
    def payload(self) -> Any:
        """What the creator has given."""
        return self.envelope.get("payload")

    @property
    def type(self) -> str:
        """The task's; "": it has none."""
        return str(self.envelope.get("type") or "")

    @property
    def traceparent(self) -> str:
        """The W3C trace context of the task; "": it has none."""
        return str(self.envelope.get("traceparent") or "")

    @property
    def last_progress(self) -> Optional[t.Progress]:
        """What the attempt before this one reported last; None: there was none."""
        return self.envelope.get("lastProgress")

    @property
    def cause(self) -> Optional[End]:
        """Why the work is to end; None: it is not. A strict lease is looked at first, since after a sleep of the machine nothing else
        may have run yet."""
        self._at_home()
        self._look()
        return self._cause

    @property
    def over(self) -> bool:
        """Whether it is completed, given up, or not ours any more."""
        return self._phase == "over" or self._over()

    @property
    def cancelled(self) -> bool:
        """Whether its end was asked for."""
        return isinstance(self.cause, Cancelled)

    def check(self) -> None:
        """Raises why the work is to end, if it is."""
        cause = self.cause
        if cause is not None:
            raise cause

    def wait(self, seconds: Optional[float] = None) -> None:
        """Sleeps for some seconds, or until the work is to end, and then raises why, as check does."""
        self._at_home()
        self._event.wait(seconds)
        self.check()

    def on_end(self, call: Callable[[End], None]) -> None:
        """Has something called, in a thread of the SDK, when the work is to end; at once where it is. It must not wait."""
        with self._lock:
            if self._cause is None:
                self._on_end.append(call)
                return
        call(self._cause)

    # What it tells.

    def progress(self, pct: float, message: Optional[str] = None, *, now: bool = False) -> None:
        """Says how far the work has come, 0 to 100, and in words of at most 1,024 bytes; more is cut. It replaces what was not sent yet,
        goes with the next beat, and never waits; now: within a second. It raises why the attempt is not ours any more.
        """
        self._at_home()
        said: Any = pct
        if isinstance(said, bool) or not isinstance(said, (int, float)) or not 0 <= said <= 100:
            raise ConfigurationError(f"a progress of {pct!r} is not between 0 and 100")
        self._look()
        text = cut(message, MAX_MESSAGE) if message else None
        with self._lock:
            self._check_ours()
            self._version += 1
            version = self._version
            self._pct = int(pct) if float(pct).is_integer() else float(pct)
            self._message = text if text is not None else self._message
            pct, text = self._pct, self._message
            self.moved = self._caller.clock.now()
        self._holder.progress(self._beaten.key, pct, text, version, now)

    def done(self, output: Any = None) -> t.CompletedResponse:
        """Says that the work is done, with any JSON as its output. It waits until that is answered, asking again with the same body
        while no server answers, at most until the attempt's token has ended."""
        return self.complete(
            {"outcome": "SUCCEEDED", "output": output} if output is not None else {"outcome": "SUCCEEDED"}
        )

    def fail(self, error: Union[BaseException, str]) -> t.CompletedResponse:
        """Says that the work has failed; a Failure says of which category, every other error is USER_CODE. Cancelled, Stopped, and an
        asyncio.CancelledError after a cancel, are the outcome CANCELLED. It waits as done does."""
        if isinstance(error, str):
            error = Failure(error)
        if isinstance(error, Stopped):
            return self.stopped(error.phase, error.partial)
        asked = isinstance(self._cause, Cancelled)
        if isinstance(error, Cancelled) or (asked and isinstance(error, asyncio.CancelledError)):
            return self.stopped()
        return self.complete({"outcome": "FAILED", "error": task_error(error)})

    def stopped(self, phase: str = "", partial: Any = None) -> t.CompletedResponse:
        """Says that the work has stopped after a cancel: in which phase, and how far it had come, as any JSON. It waits as done does."""
        body: Dict[str, Any] = {"outcome": "CANCELLED"}
        if phase:
            body["cancelledDuringPhase"] = cut(phase, 256)
        if partial is not None:
            body["partialProgress"] = partial
        return self.complete(body)

    def complete(self, body: Mapping[str, Any], cancel: Optional[Event] = None) -> t.CompletedResponse:
        """Sends a completion, types.CompletedRequest; attempt, worker and time are filled in. Once it is on its way no beat is sent any
        more. Where the attempt is not ours any more nothing is sent, and that is raised; so is the refusal of a server.
        """
        self._at_home()
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
            self._holder.settled(self._beaten.key)
            with self._lock:
                self._phase = "over"
        self._metrics.completed(str(filled["outcome"]))
        return self.answer

    def leave(self, cause: End) -> None:
        """Ends the work and sends nothing more but beats: the worker's deregistration gives the attempt back."""
        self._end(cause)
        with self._lock:
            self._phase = "over"

    def abandon(self) -> None:
        """Ends the beats and sends nothing: the server will find the attempt lost. After a completion it does nothing."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            begun, self._phase = self._phase != "running", "over" if self._phase == "running" else self._phase
        if not begun:
            self._release()

    # How it begins.

    def start(self, cancel: Optional[Event] = None) -> None:
        """Says that it has started, until that is answered, and begins to beat."""
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
        self._holder.hold(self._beaten)

    def _send(self, written: bytes, cancel: Optional[Event]) -> Dict[str, Any]:
        """Sends the last progress, where no beat has brought it yet, and then the completion."""
        if self._version != self._delivered:
            last: Dict[str, Any] = {"attempt": self.attempt, "progressPct": self._pct}
            if self._message is not None:
                last["message"] = self._message
            call = Call(
                "POST",
                path_of("/v1/tasks/{}/heartbeat", (self.task_id,)),
                body=write(last),
                endpoints=self._endpoints,
                token=self._token,
            )
            try:
                persist(self._caller, call, self._expires, self._timeout, cancel)
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
        try:
            return persist(self._caller, call, self._expires, self._timeout, cancel)[0]
        except ApiError as error:
            if error.status != 401 or not self._holder.token():
                raise
            call.token = self._holder.token()  # opens it as well, and is newer
            return persist(self._caller, call, self._expires, self._timeout, cancel)[0]

    def _release(self, ending: bool = False) -> None:
        delivered = self._holder.release(self._beaten.key, ending)
        with self._lock:
            self._delivered = max(self._delivered, delivered)

    # What beats tell of it.

    def accepted(self, beat: Accepted) -> None:
        """A beat was accepted."""
        with self._lock:
            now = self._caller.clock.now()
            if beat.timeout and not self._own:
                self._timeout = beat.timeout
            left = max(0.0, (self._timeout - (now - self._accepted)) / self._timeout)
            self._accepted = max(self._accepted, beat.sent)
            self._delivered = max(self._delivered, beat.version)
            if beat.token:
                self._token = beat.token
                self._expires = beat.sent + beat.expires if beat.expires else None
        self._metrics.lease_left(left)

    def cancel_for(self, reason: str) -> None:
        """Its end is asked for."""
        self._end(Cancelled(reason))

    def lost_by(self, code: str, fields: Mapping[str, Any]) -> None:
        """It is not ours any more, as a refusal says."""
        self.end(end_of(code, fields) or end_of("task_already_terminal", {"reason": code}))

    def end(self, cause: Optional[End]) -> None:
        """Ends the work."""
        if cause is not None:
            self._end(cause)

    def look(self) -> Optional[float]:
        """Ends it if its lease is over; else the seconds until then, if it is to be looked at again."""
        self._look()
        if self._lease != "strict" or self._phase != "running" or self._over():
            return None
        return max(0.001, self._accepted + self._timeout - self._caller.clock.now())

    def _look(self) -> None:
        if self._lease != "strict" or self._phase != "running" or not self._accepted or self._over():
            return
        silent = self._caller.clock.now() - self._accepted
        if silent >= self._timeout:
            self._holder.drop(self._beaten.key)
            self._end(LeaseEnded(silent))

    def _over(self) -> bool:
        """Whether the cause leaves nothing to send. Cancelled, and what a worker itself decides, want a completion."""
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
        self._event.set()
        for call in calls:
            try:
                call(cause)
            except Exception:
                self._log.exception("what was to be called at the end of task %s failed", self.task_id)

    def _check_ours(self) -> None:
        if self._cause is not None and self._over():
            raise self._cause
        if self._phase != "running":
            raise EndedError()

    def _at_home(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(
                f"task {self.task_id} is beaten for by process {self._pid}, and this is a fork of it, {os.getpid()}: report and complete "
                "there, for example by a multiprocessing queue"
            )

    # As a context.

    def close(self, error: Optional[BaseException]) -> None:
        """Completes it, if nobody has: with output where there is no error."""
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
            self._log.warning("the failure of task %s could not be told", self.task_id, exc_info=True)


__all__ = ["Attempt", "Holder", "Lease"]
