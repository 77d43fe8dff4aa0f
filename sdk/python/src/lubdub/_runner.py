"""Runs a worker: registration, claims and graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from typing import Any, Callable, Dict, List, Optional, Set

from ._call import path_of
from ._claims import keep_claiming
from ._clock import Event
from ._tracking import guarded
from ._isolated import IsolatedWorkerBeats
from ._job import Job
from ._probe import Probe
from ._registration import RegisteredWorker
from ._workerbeats import Session, WorkerBeats, gone
from ._workerstate import Hook, WorkerSettings
from .errors import LubdubError, forced_offline

LAST_CALL_LIMIT = 5.0  # seconds each that announcing the drain, returning tasks and deregistering may take
LAST_COMPLETION = 1.0  # seconds that the hard stop waits for completions in flight
LAST_HANDLERS = 2.0  # seconds that the shutdown hooks wait for handlers that still run after the hard stop
LAST_HOOK = 10.0  # seconds that a coroutine of the end may take
LAST_BEAT = 2.0  # seconds each that the deregistration waits for unsent reports and for a heartbeat in flight


class Unfinished(LubdubError):
    """Tasks were not finished at the hard stop and were returned to the queue."""

    def __init__(self, task_ids: List[str], confirmed: bool = True) -> None:
        what = "1 task was" if len(task_ids) == 1 else f"{len(task_ids)} tasks were"
        super().__init__(
            f"{what} not finished and returned to the queue: {', '.join(task_ids)}"
            + ("" if confirmed else ". No server confirmed that: other workers get them after the heartbeat timeout")
        )
        self.task_ids = task_ids


class Runner(RegisteredWorker):
    """The implementation of Worker.run."""

    def __init__(self, worker: WorkerSettings) -> None:
        super().__init__(worker)
        self.jobs: Set[Job] = set()
        self.starting = False  # a function of the start runs
        self.reporting = threading.Lock()

    def stop(self) -> None:
        """Stops gracefully."""
        self.stopping.set()
        self.change()

    def kill(self) -> None:
        """Stops now."""
        self.hard.set()
        self.stop()

    def run(self) -> None:
        """Runs until it has stopped."""
        worker = self.worker
        for event in (self.stopping, self.hard):
            event.then(self.change)
        with contextlib.ExitStack() as end:
            end.enter_context(self.clock.inside())
            end.callback(self.loop.end)
            if not self.stopping.is_set():
                end.callback(self.shut_down)
                self.start_up()
            if worker.probe is not None:
                probe = Probe(worker.probe, worker.probe_url, self.alive)
                end.callback(probe.close)
                self.probe_url = probe.url
            settings, watched = self.isolation(), worker.probe is not None
            self.beats = (
                WorkerBeats(self.client.caller, self, watched)
                if settings is None
                else IsolatedWorkerBeats(settings, self.clock, self, watched)
            )
            for deed in (self.beats.close, self.no_claims.set, self.stopping.set):
                end.callback(deed)
            try:
                if not self.register():
                    return  # it was stopped before it registered
            except LubdubError as error:
                raise forced_offline(error, "") or error
            self.claiming = True
            self.clock.spawn(lambda: keep_claiming(self, self.begin), "lubdub-claims")
            self.await_(lambda: self.stopping.is_set() or self.draining or self.fatal is not None)
            self.finish()
            self.no_claims.set()
            self.stopping.set()  # prevents another registration
            self.await_(
                lambda: not (self.claiming or self.joining or self.announcing), self.clock.now() + 2 * LAST_CALL_LIMIT
            )
            self.end_completions()
            self.beats.flush(LAST_BEAT)
            self.beats.close()
            self.beats.rest(LAST_BEAT)
            confirmed = self.deregister()
            for job in list(self.jobs):
                job.measure()  # one whose attempt is lost, and whose handler still runs
        if self.forced is not None:
            raise self.forced
        if self.given_back:
            raise Unfinished(sorted(self.given_back.values()), confirmed) from self.fatal
        if self.fatal is not None:
            raise self.fatal

    # Hooks.

    def call_hook(self, hook: Hook, until: Callable[[Callable[[], None]], object], starting: bool = False) -> None:
        """Calls a hook; a coroutine runs on the loop of the handlers. until: as for Loop.run."""
        with self.clock.outside():
            self.starting = starting
            try:
                found = hook()
            finally:
                self.starting = False
            if inspect.isawaitable(found):
                self.loop.run(found, until)

    def start_up(self) -> None:
        """Calls the hooks of the start, until the worker is stopped, which cancels a coroutine."""
        for hook in self.worker.startup:
            try:
                self.call_hook(hook, self.stopping.then, starting=True)
            except asyncio.CancelledError:
                if not self.stopping.is_set():
                    raise
            if self.stopping.is_set():
                return

    def shut_down(self) -> None:
        """Calls the hooks of the end, coroutines with a time limit. Handlers that were left running at the hard stop get a moment."""
        if self.worker.shutdown:
            self.await_(lambda: not self.jobs, self.clock.now() + LAST_HANDLERS)
        for hook in self.worker.shutdown:
            try:
                self.call_hook(hook, lambda cancel: self.clock.call_later(LAST_HOOK, cancel))
            except (Exception, asyncio.CancelledError):
                self.logger.exception("a shutdown hook failed: %s", getattr(hook, "__qualname__", hook))

    def isolation(self) -> Optional[Dict[str, Any]]:
        """The settings of the heartbeat child process; None: heartbeats are sent from this process."""
        wanted = self.client.isolated if self.worker.isolated is None else self.worker.isolated
        settings = self.client.isolation() if wanted else None
        if settings is None:
            return None
        return {
            **settings,
            "urls": self.client.caller.endpoints.urls,
            "hard": self.worker.hard_stop,
            "signals": self.signals,
        }

    def alive(self) -> bool:
        """Whether the probe answers 200."""
        session = self.session
        return session is not None and self.clock.now() - self.seen <= session.timeout / 2

    # Tasks.

    def begin(self, envelopes: List[Dict[str, Any]]) -> None:
        """Starts the tasks of a claim. All are listed before one is started, however long that takes. Those that come too late to start are
        returned to the queue."""
        jobs = [Job(self, envelope, self.leave) for envelope in envelopes]
        with self.cond:
            self.beats.listed([(job.task_id, job.number) for job in jobs])
            if self.leaving:
                for job in jobs:
                    self.mark_returned(job.key, job.task_id)
                return
            self.jobs.update(jobs)
            self.set_active()
        self.report_running()
        for job in jobs:
            try:
                self.clock.spawn(job.run, f"lubdub-task-{job.key}")
            except RuntimeError as error:  # no more threads can be started
                self.logger.error("task %s was claimed but not started: %s", job.key, error)
                self.beats.release(job.key)
                self.leave(job)

    def set_active(self) -> None:
        """Updates the number of running tasks, which the next heartbeat reports."""
        self.active = len(self.jobs)
        self.beats.active(self.active)

    def report_running(self) -> None:
        """Reports the number of running tasks to the metrics, one call at a time, so that the last one has the last number."""
        with self.reporting:
            guarded(self.metrics.running, self.active)

    def leave(self, job: Job) -> None:
        """Removes a task that is done."""
        with self.cond:
            self.jobs.discard(job)
            self.set_active()
            self.cond.notify_all()
        self.report_running()

    # The stop.

    def idle(self) -> bool:
        """Whether no task runs and no claim can return more."""
        return not self.jobs and not self.claiming

    def finish(self) -> None:
        """Waits for running tasks as long as the stops allow, and returns the rest to the queue. Heartbeats continue."""
        must_stop = lambda: self.stopping.is_set() or self.fatal is not None  # noqa: E731
        if not must_stop():  # the server started the drain, and ends it itself when its deadline has passed
            self.await_(lambda: self.idle() or must_stop() or self.hard.is_set())
            if not must_stop():
                return
        began = self.clock.now()
        if self.forced is not None:  # handlers may still clean up
            self.await_(lambda: self.idle() or self.hard.is_set(), began + self.worker.hard_stop)
            return
        self.beats.stopping(self.worker.hard_stop)
        self.hard.then(lambda: self.beats.stopping(0))
        self.announcing = True
        self.clock.spawn(self.announce, "lubdub-drain")
        if (
            self.await_(lambda: self.idle() or self.hard.is_set(), began + self.worker.soft_stop)
            and not self.hard.is_set()
        ):
            return
        if not self.hard.is_set():
            self.logger.info("Soft stop reached: cancelling handlers (%d active)", len(self.jobs))
            self.soft.set()
            if self.await_(lambda: self.idle() or self.hard.is_set(), began + self.worker.hard_stop) and self.idle():
                return
        self.soft.set()
        self.no_claims.set()
        self.give_back()

    def announce(self) -> None:
        """Announces the drain, which ends a waiting claim; a claim that does not end is cancelled."""
        session = self.session
        try:
            if session is not None and not self.draining:
                self.logger.info(
                    "Draining: the worker is stopping (worker %s, %d active)", session.worker_id, len(self.jobs)
                )
                self.report("drain", session, {"reason": "it stops"})
            self.await_(lambda: not self.claiming or self.hard.is_set(), self.clock.now() + 1)
            self.no_claims.set()
        finally:
            self.announcing = False
            self.change()

    def report(self, act: str, session: Session, body: Dict[str, Any]) -> bool:
        """Sends a drain or deregistration; False: no server confirmed it."""
        late = Event(self.clock)
        timer = self.clock.call_later(LAST_CALL_LIMIT, late.set)
        try:
            self.client.post(
                path_of(f"/v1/workers/{{}}/{act}", (session.worker_id,)), body, token=session.token, cancel=late
            )
            return True
        except LubdubError as error:
            if not gone(error):
                self.logger.warning("No server confirmed the %s of worker %s: %s", act, session.worker_id, error)
            return False
        finally:
            timer.cancel()

    def give_back(self) -> None:
        """Leaves running tasks to the deregistration. Completions in flight get a little more time."""
        with self.cond:
            self.leaving = True
            left = list(self.jobs)
        ids = [job.task_id for job in left if job.give_back()]
        if ids:
            self.logger.warning("Hard stop reached; running tasks are returned to the queue: %s", ", ".join(ids))
        self.await_(lambda: not self.completing(), self.clock.now() + LAST_COMPLETION)

    def completing(self) -> List[Job]:
        """The tasks whose completion is in flight."""
        return [job for job in list(self.jobs) if job.settling and not job.settled]

    def end_completions(self) -> None:
        """Stops retrying completions; unconfirmed tasks are returned to the queue too."""
        unanswered = self.completing()
        self.left.set()
        for job in unanswered:
            job.done.wait(LAST_CALL_LIMIT)
            if job.unanswered:
                self.mark_returned(job.key, job.task_id)

    def deregister(self) -> bool:
        """Deregisters; False: no server confirmed it."""
        session = self.session
        if session is None or self.forced is not None:
            self.session = None
            return False
        self.logger.info("Deregistering worker ID: %s", session.worker_id)
        confirmed = self.report("deregister", session, {"drain": False, "reason": "it stops"})
        self.session = None
        return confirmed
