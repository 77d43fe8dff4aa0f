"""A task that a worker runs."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, Callable, Dict, List, Optional

from . import _exit
from ._answers import seconds, seconds_between, text
from ._beats import key_of
from ._clock import Event, Timer
from ._log import log_failure, of_type, retry_of
from ._tracking import guarded
from ._workerstate import WorkerState, handler_of
from .task import Task
from .ends import Cancelled, End, Stopping, Stuck, TaskTimeout
from .errors import EndedError, LubdubError, OutputError, may_retry
from .failures import Failure, explained
from .metrics import AttemptEnd

TASK_TIMEOUT = 300.0  # seconds that a task may take if neither it nor the worker sets a limit
LOOP_LIMIT = 1.0  # seconds within which an event loop that shuts down also cancels the worker
ENDING_LIMIT = 10.0  # seconds that a handler may continue after its end before a warning is logged


class Job:
    """A running task. It occupies a place until its handler has returned."""

    def __init__(self, runner: WorkerState, envelope: Dict[str, Any], on_end: Callable[["Job"], None]) -> None:
        self.runner, self.envelope, self.on_end = runner, envelope, on_end
        self.task_id, self.number = str(envelope["taskId"]), int(envelope["attempt"])
        self.key = key_of(self.task_id, self.number)
        self.attempt: Optional[Task] = None  # once it has started
        self.lock = threading.Lock()
        self.settling = False  # a thread completes it
        self.returned = False  # the deregistration returns it to the queue: it must not start and is not completed
        self.settled = False
        self.unanswered = False  # no server confirmed its completion
        self.done = Event(runner.clock)  # set once it is settled
        self.timers: List[Timer] = []
        self.ended = False
        self.began = 0.0  # when the start was confirmed
        self.measured = False

    def run(self) -> None:
        """Runs the task."""
        try:
            attempt = self.begin()
            if attempt is not None:
                self.work(attempt)
        except _exit.Exiting:
            raise
        except BaseException:
            self.runner.logger.exception("task %s could not be completed", self.key)
        finally:
            self.ended = True
            for timer in self.timers:
                timer.cancel()
            if self.attempt is not None:
                self.attempt.abandon()  # no effect on an attempt that is returned to the queue
                self.measure()
            self.on_end(self)

    def begin(self) -> Optional[Task]:
        """Reports the start; None: the task must not start."""
        runner, client = self.runner, self.runner.client
        if runner.forced is not None:
            return None
        try:
            session = runner.session
            attempt = client.attempt_of(
                self.envelope,
                runner.holder,
                client.endpoints_of(str(self.envelope.get("callbackBaseUrl") or "")),
                worker_timeout=session.timeout if session is not None else 60.0,
                limit=self.limit() and self.limit() + self.grace(),
            )
            runner.attempts[self.key] = attempt
            attempt.start(runner.soft)
        except BaseException as error:
            if runner.soft.is_set() and may_retry(error):  # its start was not confirmed, and is not retried
                self.give_back()
                return None
            runner.beats.release(self.key)
            runner.attempts.pop(self.key, None)
            runner.unmark_returned(self.key)
            if not isinstance(error, LubdubError):
                raise
            runner.logger.info("task %s was claimed but not started: %s", self.key, error)
            return None
        with self.lock:
            self.began, self.attempt, returned = runner.clock.now(), attempt, self.returned
        if returned:
            attempt.leave(Stopping())
            return None
        return attempt

    def work(self, attempt: Task) -> None:
        """Calls the handler and completes the task with the result."""
        runner = self.runner
        output: Any = None
        failure: Optional[BaseException] = None
        if isinstance(attempt.cause, Cancelled):  # it was cancelled before it started
            failure = attempt.cause
        elif runner.soft.is_set():  # too late to begin
            attempt.end(Stopping())
            failure = attempt.cause
        else:
            forget = runner.soft.then(lambda: attempt.end(Stopping()))
            runner.client.leases.watch(attempt)
            self.watch(attempt)
            if self.number > 1:
                runner.logger.info("Attempt %d of task %s%s begins", self.number, self.task_id, of_type(self.envelope))
            try:
                output = self.call(attempt)
            except BaseException as error:
                failure = explained(attempt.cause, error)
            finally:
                forget()
        self.ended = True
        if failure is not None and isinstance(attempt.cause, Stopping) and self.give_back():
            return
        self.settle(output, failure)
        self.done.wait()  # until another thread has completed it: the attempt must not be abandoned before

    def call(self, attempt: Task) -> Any:
        """Calls the handler."""
        handler = handler_of(self.runner.worker, attempt.type)
        with self.runner.clock.outside():
            found = handler(attempt)
            if not inspect.isawaitable(found):
                return found
            return self.call_async(attempt, found)

    def call_async(self, attempt: Task, work: Any) -> Any:
        """Runs a coroutine on the worker's loop; the end of the attempt cancels it."""
        runner = self.runner
        try:
            return runner.loop.run(work, lambda cancel: attempt.on_end(lambda _: cancel()))
        except asyncio.CancelledError:
            if attempt.cause is None and not runner.loop.own and runner.stopping.wait(LOOP_LIMIT):
                attempt.end(
                    Stopping()
                )  # the caller's loop shuts down: it cancels all coroutines, and with run_async the worker
            cause = attempt.cause
            if cause is None:
                raise Failure("the handler was cancelled") from None
            raise cause from None

    def settle(self, output: Any, failure: Optional[BaseException]) -> None:
        """Completes the task unless another thread does."""
        if self.claim_completion():
            self.complete(output, failure)

    def claim_completion(self) -> bool:
        """Whether the caller is the one that completes the task."""
        with self.lock:
            first, self.settling = not self.settling, True
            return first

    def complete(self, output: Any, failure: Optional[BaseException]) -> None:
        """Completes the task."""
        attempt, runner = self.attempt, self.runner
        assert attempt is not None
        over = runner.clock.now()
        try:
            try:
                answer = attempt.done(output) if failure is None else attempt.fail(failure)
            except OutputError as error:
                failure = Failure(str(error), retryable=False)
                answer = attempt.fail(failure)
            state = str(answer.get("finalState"))
            runner.counted(state)
            if failure is not None and state == "FAILED":
                log_failure(runner.logger, self.envelope, failure, retry_of(answer), bool(answer.get("willRetry")))
            runner.logger.debug("task %s has ended: %s", self.key, state)
        except (End, EndedError) as error:
            runner.logger.debug("the completion of task %s is not sent: %s", self.key, error)
        except LubdubError as error:
            self.unanswered = may_retry(error)
            then = (
                f"its completion was not accepted{'; the server will recover it' if may_retry(error) else ''}: {error}"
            )
            if failure is not None:
                log_failure(runner.logger, self.envelope, failure, then)
            else:
                runner.logger.warning("Task %s has ended, but %s", self.key, then)
        finally:
            self.settled = True
            self.measure(over)
            self.done.set()

    def give_back(self) -> bool:
        """Leaves the task to the deregistration, which returns it to the queue: it stays in the inventory and is not completed. False:
        another thread completes it, or the attempt is no longer ours."""
        attempt = self.attempt
        if (attempt is not None and attempt.over) or not self.claim_completion():
            return False
        with self.lock:
            self.returned, attempt = True, self.attempt
        if attempt is not None:
            attempt.leave(Stopping())
        self.settled = True
        self.runner.mark_returned(self.key, self.task_id)
        self.measure()
        self.done.set()
        return True

    def measure(self, over: Optional[float] = None) -> None:
        """Reports the end of the attempt, if it has begun, to the metrics, once. over: when it ended; None: now."""
        runner, envelope = self.runner, self.envelope
        with self.lock:
            attempt = self.attempt
            if attempt is None or self.measured:
                return
            self.measured = True
        answer, ready, first = attempt.answer or {}, envelope.get("readyAt"), attempt.first_answer
        returned = (self.returned or (self.unanswered and runner.left.is_set())) and runner.forced is None
        end = AttemptEnd(
            type=attempt.type if attempt.type in runner.worker.handlers else "",
            queue=runner.worker.queue,
            attempt=self.number,
            outcome=text(answer.get("finalState")) or ("RETURNED" if returned else "LOST"),
            will_retry=bool(answer.get("willRetry")),
            duration=(runner.clock.now() if over is None else over) - self.began,
            queue_wait=seconds_between(ready, envelope.get("enqueuedAt")) if ready else None,
            first_heartbeat=None if first is None else max(0.0, first - self.began),
        )
        guarded(lambda: runner.metrics.ended(end))  # also if it has no such method

    # Limits.

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls back unless the handler has returned before."""
        self.timers.append(self.runner.clock.call_later(seconds, lambda: None if self.ended else call()))

    def watch(self, attempt: Task) -> None:
        """Starts the task's limits, and warns if the handler continues after its end."""
        worker = self.runner.worker
        attempt.on_end(
            lambda cause: self.later(
                ENDING_LIMIT,
                lambda: self.runner.logger.warning(
                    "the handler of task %s is still running though its work must end: %s", self.key, cause
                ),
            )
        )
        limit = self.limit()
        if limit:
            self.later(limit, lambda: self.time_out(attempt))
        if worker.watchdog:
            self.later(worker.watchdog, lambda: self.look(attempt))

    def limit(self) -> float:
        """How many seconds the task may take; 0: no limit. The task's own limit replaces the default, but not the worker's setting."""
        limit = self.runner.worker.task_timeout
        if limit is not None:
            return limit
        return 0 if seconds(self.envelope.get("runTimeoutMs")) else TASK_TIMEOUT

    def grace(self) -> float:
        """How many seconds the handler has to return after its time limit."""
        return max(seconds(self.envelope.get("cancelGracePeriodMs")), 1.0)

    def time_out(self, attempt: Task) -> None:
        """Ends a task that has reached its time limit; its handler gets the cancel grace period."""
        if self.runner.soft.is_set():
            return  # it was already stopped, and is returned to the queue
        attempt.end(TaskTimeout())
        self.later(self.grace(), lambda: self.fail_in_background(Failure(str(TaskTimeout()), "TIMEOUT")))

    def look(self, attempt: Task) -> None:
        """Ends the task if it has reported no progress for too long."""
        if self.runner.soft.is_set():
            return
        watchdog = self.runner.worker.watchdog
        quiet = self.runner.clock.now() - attempt.moved
        if quiet < watchdog:
            self.later(watchdog - quiet, lambda: self.look(attempt))
            return
        stuck = Stuck(watchdog)
        self.fail_in_background(Failure(str(stuck), "TIMEOUT"), lambda: attempt.end(stuck))

    def fail_in_background(self, failure: Failure, first: Optional[Callable[[], None]] = None) -> None:
        """Completes the task from another thread, since timers must not block."""
        if not self.claim_completion():
            return
        if first is not None:
            first()
        try:
            self.runner.clock.spawn(lambda: self.complete(None, failure), f"lubdub-fail-{self.key}")
        except RuntimeError:  # no thread can be started: the server will declare the attempt lost
            self.done.set()
            raise
