"""A worker at work: registration, claims, and the stop in good order."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, Optional, Set

from ._call import path_of
from ._claims import keep_claiming
from ._clock import Event
from ._hold import guarded
from ._isolated import IsolatedWorkerBeats
from ._job import Job
from ._probe import Probe
from ._registration import RegisteringWorker
from ._workerbeats import Session, WorkerBeats, gone
from ._workerstate import WorkerSettings
from .errors import LubdubError, forced_offline

LAST_WORDS = 5.0  # seconds that announcing a drain, giving back and deregistering may take each
LAST_COMPLETION = 1.0  # seconds for which the hard stop waits for completions that are under way
LAST_BEAT = 2.0  # seconds for which the deregistration waits for a heartbeat that is under way


class Unfinished(LubdubError):
    """Tasks were not finished at the hard stop, and were given back."""

    def __init__(self, task_ids: List[str], confirmed: bool = True) -> None:
        what = "1 task was" if len(task_ids) == 1 else f"{len(task_ids)} tasks were"
        super().__init__(
            f"{what} not finished and given back: {', '.join(task_ids)}"
            + ("" if confirmed else ". No server confirmed that: others get them after the worker's heartbeat timeout")
        )
        self.task_ids = task_ids


class Runner(RegisteringWorker):
    """What Worker.run does."""

    def __init__(self, worker: WorkerSettings) -> None:
        super().__init__(worker)
        self.jobs: Set[Job] = set()

    def stop(self) -> None:
        """Stops in good order."""
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
            end.callback(self.loop.end)
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
                    return  # it was stopped before it began
            except LubdubError as error:
                raise forced_offline(error, "") or error
            self.claiming = True
            self.clock.spawn(lambda: keep_claiming(self, self.begin), "lubdub-claims")
            self.await_(lambda: self.stopping.is_set() or self.draining or self.fatal is not None)
            self.finish()
            self.no_claims.set()
            self.stopping.set()  # so that it does not come back
            self.await_(
                lambda: not (self.claiming or self.joining or self.announcing), self.clock.now() + 2 * LAST_WORDS
            )
            self.end_completions()
            self.beats.close()
            self.beats.rest(LAST_BEAT)
            confirmed = self.deregister()
        if self.forced is not None:
            raise self.forced
        if self.given_back:
            raise Unfinished(sorted(self.given_back.values()), confirmed) from self.fatal
        if self.fatal is not None:
            raise self.fatal

    def isolation(self) -> Optional[Dict[str, Any]]:
        """The settings of a child process that beats; None: beats come from this process."""
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
        """What the probe answers."""
        session = self.session
        return session is not None and self.clock.now() - self.seen <= session.timeout / 2

    # Tasks.

    def begin(self, envelope: Dict[str, Any]) -> None:
        """Has a task done. What comes too late for that is given back."""
        job = Job(self, envelope, self.leave)
        with self.cond:
            self.beats.listed(job.task_id, job.number)
            if self.leaving:
                self.gives_back(job.key, job.task_id)
                return
            self.jobs.add(job)
            self.set_active()
        guarded(self.metrics.running, self.active)
        try:
            self.clock.spawn(job.run, f"lubdub-task-{job.key}")
        except RuntimeError as error:  # there are too many threads
            self.logger.error("task %s was claimed and is not begun: %s", job.key, error)
            self.beats.release(job.key)
            self.leave(job)

    def set_active(self) -> None:
        """Counts the tasks at work, which the next heartbeat reports."""
        self.active = len(self.jobs)
        self.beats.active(self.active)

    def leave(self, job: Job) -> None:
        """A task is done."""
        with self.cond:
            self.jobs.discard(job)
            self.set_active()
            self.cond.notify_all()
        guarded(self.metrics.running, self.active)

    # The end.

    def idle(self) -> bool:
        """Whether nothing is at work, and no claim can bring more."""
        return not self.jobs and not self.claiming

    def finish(self) -> None:
        """Waits for what is at work as long as there is time, and gives back what is left. Beats go on."""
        told = lambda: self.stopping.is_set() or self.fatal is not None  # noqa: E731
        if not told():  # the server has asked for the drain, and says itself when it takes back what is held
            self.await_(lambda: self.idle() or told() or self.hard.is_set())
            if not told():
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
            self.logger.info("Handlers are cancelled: the soft stop has come (%d active)", len(self.jobs))
            self.soft.set()
            if self.await_(lambda: self.idle() or self.hard.is_set(), began + self.worker.hard_stop) and self.idle():
                return
        self.soft.set()
        self.no_claims.set()
        self.give_back()

    def announce(self) -> None:
        """Says that the worker drains; a claim that waits is answered by that, and is else given up."""
        session = self.session
        try:
            if session is not None and not self.draining:
                self.logger.info("Draining: the worker stops (worker %s, %d active)", session.worker_id, len(self.jobs))
                self.say("drain", session, {"reason": "it stops"})
            self.await_(lambda: not self.claiming or self.hard.is_set(), self.clock.now() + 1)
            self.no_claims.set()
        finally:
            self.announcing = False
            self.change()

    def say(self, act: str, session: Session, body: Dict[str, Any]) -> bool:
        """Sends the server an act of the worker; False: no server confirmed it."""
        late = Event(self.clock)
        timer = self.clock.call_later(LAST_WORDS, late.set)
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
        """Leaves what still runs to the deregistration. Completions that are under way get a little longer."""
        with self.cond:
            self.leaving = True
            left = list(self.jobs)
        ids = [job.task_id for job in left if job.give_back()]
        if ids:
            self.logger.warning("The hard stop has come, and what still runs is given back: %s", ", ".join(ids))
        self.await_(lambda: not self.completing(), self.clock.now() + LAST_COMPLETION)

    def completing(self) -> List[Job]:
        """Those whose completion is under way."""
        return [job for job in list(self.jobs) if job.settling and not job.settled]

    def end_completions(self) -> None:
        """No completion is asked for any more; what no server has confirmed is given back too."""
        unanswered = self.completing()
        self.left.set()
        for job in unanswered:
            job.done.wait(LAST_WORDS)
            if job.unanswered:
                self.gives_back(job.key, job.task_id)

    def deregister(self) -> bool:
        """Leaves; False: no server confirmed it."""
        session = self.session
        if session is None or self.forced is not None:
            self.session = None
            return False
        self.logger.info("Deregistering worker ID: %s", session.worker_id)
        confirmed = self.say("deregister", session, {"drain": False, "reason": "it stops"})
        self.session = None
        return confirmed
