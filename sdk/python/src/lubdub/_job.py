"""A task at work."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
from typing import Any, Callable, Dict, List, Optional

from . import _exit
from ._answers import seconds
from ._beats import key_of
from ._clock import Event, Timer
from ._log import log_failure, retry_of
from ._workerstate import WorkerState
from .attempt import Attempt
from .ends import Cancelled, End, Stopping, Stuck, TaskTimeout
from .errors import EndedError, LubdubError, OutputError, may_retry
from .failures import Failure, explained

TASK_TIMEOUT = 300.0  # seconds that a task may take where neither it nor the worker has a limit
IGNORED = 10.0  # seconds for which a handler may go on after its end before that is told of


class Job:
    """It takes a place until its handler has ended."""

    def __init__(self, runner: WorkerState, envelope: Dict[str, Any], on_end: Callable[["Job"], None]) -> None:
        self.runner, self.envelope, self.on_end = runner, envelope, on_end
        self.task_id, self.number = str(envelope["taskId"]), int(envelope["attempt"])
        self.key = key_of(self.task_id, self.number)
        self.attempt: Optional[Attempt] = None  # once it has started
        self.lock = threading.Lock()
        self.settling = False  # somebody completes it
        self.returned = False  # the deregistration gives it back: it must not begin, and is not completed
        self.settled = False
        self.unanswered = False  # no server has confirmed its completion
        self.done = Event(runner.clock)  # it is settled
        self.timers: List[Timer] = []
        self.ended = False

    def run(self) -> None:
        """Does the task."""
        try:
            attempt = self.begin()
            if attempt is not None:
                self.work(attempt)
        except _exit.Exiting:
            raise
        except BaseException:
            self.runner.logger.exception("task %s could not be brought to its end", self.key)
        finally:
            self.ended = True
            for timer in self.timers:
                timer.cancel()
            if self.attempt is not None:
                self.attempt.abandon()  # which does nothing to one that is given back
            self.on_end(self)

    def begin(self) -> Optional[Attempt]:
        """Says that it has started; None: it has not."""
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
            if runner.soft.is_set() and may_retry(error):  # its start was not confirmed, and is not asked for any more
                self.give_back()
                return None
            runner.beats.release(self.key)
            runner.attempts.pop(self.key, None)
            runner.keeps(self.key)
            if not isinstance(error, LubdubError):
                raise
            runner.logger.info("task %s was claimed and is not begun: %s", self.key, error)
            return None
        with self.lock:
            self.attempt, returned = attempt, self.returned
        if returned:
            attempt.leave(Stopping())
            return None
        return attempt

    def work(self, attempt: Attempt) -> None:
        """Calls the handler, and completes the task with what comes of it."""
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
        self.done.wait()  # by whoever does it: before that the attempt must not be given up

    def call(self, attempt: Attempt) -> Any:
        """Calls the handler."""
        worker = self.runner.worker
        handler = worker.handlers.get(attempt.type) if attempt.type else worker.default
        if handler is None and not attempt.type:
            raise Failure(
                "the task has no type, and this worker no default handler; create the task with a type, or give the worker a "
                "default handler with lubdub.Worker(default=...)",
                "CONFIGURATION",
                retryable=False,
            )
        if handler is None:
            raise Failure(f"this worker has no handler for tasks of type {attempt.type!r}", "CONFIGURATION")
        for wrap in reversed(worker.middleware):
            handler = wrap(handler)
        with self.runner.clock.outside():
            found = handler(attempt)
            if not inspect.isawaitable(found):
                return found
            return self.call_async(attempt, found)

    def call_async(self, attempt: Attempt, work: Any) -> Any:
        """Waits for a coroutine on the worker's loop, which is cancelled when the work is to end."""
        loop = self.runner.loop.get()

        async def main() -> Any:
            task = asyncio.ensure_future(work)

            def end(cause: End) -> None:
                try:
                    loop.call_soon_threadsafe(task.cancel)
                except RuntimeError:
                    pass  # the loop is closed

            attempt.on_end(end)
            return await task

        whole = main()
        doing = asyncio.run_coroutine_threadsafe(whole, loop)
        over = _exit.blocked(doing.cancel)
        try:
            return doing.result()
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            _exit.check()
            cause = attempt.cause
            if cause is None:
                raise Failure("the handler was cancelled") from None
            raise cause from None
        finally:
            over()
            for one in (whole, work):  # which were not begun, since the loop has ended
                if inspect.iscoroutine(one) and inspect.getcoroutinestate(one) == inspect.CORO_CREATED:
                    one.close()

    def settle(self, output: Any, failure: Optional[BaseException]) -> None:
        """Completes the task, unless somebody else does."""
        if self.claims_the_end():
            self.complete(output, failure)

    def claims_the_end(self) -> bool:
        """Whether the caller is the one to complete the task."""
        with self.lock:
            first, self.settling = not self.settling, True
            return first

    def complete(self, output: Any, failure: Optional[BaseException]) -> None:
        """Completes the task."""
        attempt, runner = self.attempt, self.runner
        assert attempt is not None
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
            runner.logger.info("the end of task %s is not told: %s", self.key, error)
        except LubdubError as error:
            self.unanswered = may_retry(error)
            then = (
                f"its completion was not accepted{', and the server recovers it' if may_retry(error) else ''}: {error}"
            )
            if failure is not None:
                log_failure(runner.logger, self.envelope, failure, then)
            else:
                runner.logger.warning("Task %s has ended, and %s", self.key, then)
        finally:
            self.settled = True
            self.done.set()

    def give_back(self) -> bool:
        """Leaves the task to the deregistration, which gives it back: it stays in the inventory and is not completed. False: another
        thread completes it, or the attempt is not ours any more."""
        attempt = self.attempt
        if (attempt is not None and attempt.over) or not self.claims_the_end():
            return False
        with self.lock:
            self.returned, attempt = True, self.attempt
        if attempt is not None:
            attempt.leave(Stopping())
        self.settled = True
        self.runner.gives_back(self.key, self.task_id)
        self.done.set()
        return True

    # What may end it.

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls back unless the handler has ended before."""
        self.timers.append(self.runner.clock.call_later(seconds, lambda: None if self.ended else call()))

    def watch(self, attempt: Attempt) -> None:
        """Ends it when it takes too long or is stuck, and tells of a handler that does not heed its end."""
        worker = self.runner.worker
        attempt.on_end(
            lambda cause: self.later(
                IGNORED,
                lambda: self.runner.logger.warning(
                    "the handler of task %s goes on though it was to end: %s", self.key, cause
                ),
            )
        )
        limit = self.limit()
        if limit:
            self.later(limit, lambda: self.time_out(attempt))
        if worker.watchdog:
            self.later(worker.watchdog, lambda: self.look(attempt))

    def limit(self) -> float:
        """How many seconds the task may take here; 0: no bound. What the task itself allows goes before what nobody has set."""
        limit = self.runner.worker.task_timeout
        if limit is not None:
            return limit
        return 0 if seconds(self.envelope.get("runTimeoutMs")) else TASK_TIMEOUT

    def grace(self) -> float:
        """How many seconds the handler has to end after it was told that the task took too long."""
        return max(seconds(self.envelope.get("cancelGracePeriodMs")), 1.0)

    def time_out(self, attempt: Attempt) -> None:
        """It has taken too long; its handler has the grace of a cancel to end."""
        if self.runner.soft.is_set():
            return  # it was told to end, and is given back
        attempt.end(TaskTimeout())
        self.later(self.grace(), lambda: self.fail_in_background(Failure(str(TaskTimeout()), "TIMEOUT")))

    def look(self, attempt: Attempt) -> None:
        """The watchdog's look."""
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
        """Completes it from another thread, since timers must not wait."""
        if not self.claims_the_end():
            return
        if first is not None:
            first()
        try:
            self.runner.clock.spawn(lambda: self.complete(None, failure), f"lubdub-fails-{self.key}")
        except RuntimeError:  # there are too many threads: the server finds the attempt lost
            self.done.set()
            raise
