"""A worker at work: registration, claims, and the stop in good order."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Set, Union

from ._answers import interval_of, plain, timeout_of
from ._beats import Beaten
from ._call import path_of
from ._claims import keep_claiming
from ._clock import Event, backoff
from ._hold import Ears, guarded
from ._isolated import IsolatedWorkerBeats
from ._job import Job
from ._loop import Loop
from ._probe import Probe
from ._workerbeats import Session, WorkerBeats, gone
from .attempt import LEAST_TIMEOUT, Holder
from .ends import Lost
from .errors import AnswerError, ApiError, ForcedOffline, LubdubError, forced_offline, may_retry, wait_of

if TYPE_CHECKING:
    from .worker import Worker

LAST_WORDS = 5.0  # seconds that announcing a drain, giving back and deregistering may take each
LAST_COMPLETION = 1.0  # seconds for which the hard stop waits for completions that are under way
LAST_BEAT = 2.0  # seconds for which the deregistration waits for a heartbeat that is under way
CRASH_COUNT = 3  # registrations within a minute that are no crash loop


class Unfinished(LubdubError):
    """Tasks were not finished at the hard stop, and were given back."""

    def __init__(self, task_ids: List[str], confirmed: bool = True) -> None:
        what = "1 task was" if len(task_ids) == 1 else f"{len(task_ids)} tasks were"
        super().__init__(
            f"{what} not finished and given back: {', '.join(task_ids)}"
            + ("" if confirmed else ". No server confirmed that: others get them after the worker's heartbeat timeout")
        )
        self.task_ids = task_ids


class WorkerHolder(Holder):
    """Beats for attempts by the worker's own beat."""

    def __init__(self, runner: "Runner") -> None:
        self.runner, self.over = runner, runner.left

    def hold(self, entry: Beaten) -> None:
        self.runner.beats.hold(entry)

    def progress(self, key: str, pct: Optional[float], message: Optional[str], version: int, now: bool = False) -> None:
        self.runner.beats.progress(key, pct, message, version, now)

    def release(self, key: str, ending: bool = False) -> int:
        try:
            return self.runner.beats.release(key, ending)
        finally:
            self.runner.attempts.pop(key, None)

    def settled(self, key: str) -> None:
        self.runner.beats.settled(key)

    def drop(self, key: str) -> None:
        self.runner.beats.drop(key)

    def worker_id(self) -> str:
        return self.runner.worker_id()

    def token(self) -> str:
        session = self.runner.session
        return session.token if session is not None else ""


class Runner(Ears):
    """What Worker.run does."""

    def __init__(self, worker: "Worker") -> None:
        super().__init__(worker.client.metrics, worker.log, worker.client.caller.clock)
        self.worker, self.client, self.clock = worker, worker.client, worker.client.caller.clock
        self.left = Event(self.clock)
        self.holder = WorkerHolder(self)
        self.cond = self.clock.condition()
        self.stopping, self.soft, self.hard = Event(self.clock), Event(self.clock), Event(self.clock)
        self.no_claims = Event(self.clock)
        self.session: Optional[Session] = None
        self.jobs: Set[Job] = set()
        self.entered: List[float] = []  # registrations of the last minute
        self.claiming = self.draining = self.joining = self.announcing = False
        self.leaving = False  # nothing is begun any more
        self.fatal: Optional[LubdubError] = None
        self.forced: Optional[ForcedOffline] = None  # nothing is sent any more
        self.given_back: Dict[str, str] = {}  # ids of tasks, by attempt, that the deregistration gives back
        self.probe_url = ""
        self.signals: Optional[int] = None  # a descriptor at which signals arrive, whatever holds the GIL
        self.seen = self.clock.now()  # when the beats were awake last
        self.beats: Union[WorkerBeats, IsolatedWorkerBeats]
        self.loop = Loop()

    def worker_id(self) -> str:
        """The id of the newest registration."""
        session = self.session
        return session.worker_id if session is not None else ""

    def change(self) -> None:
        """Tells all who wait."""
        with self.cond:
            self.cond.notify_all()

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
            self.clock.spawn(lambda: keep_claiming(self), "lubdub-claims")
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

    def await_(self, holds: Callable[[], bool], until: Optional[float] = None) -> bool:
        """Waits until a condition holds, which is looked at after each change; says whether it did before a time."""
        with self.cond:
            while not holds():
                left = None if until is None else until - self.clock.now()
                if left is not None and left <= 0:
                    return False
                self.cond.wait(left)
            return True

    def alive(self) -> bool:
        """What the probe answers."""
        session = self.session
        return session is not None and self.clock.now() - self.seen <= session.timeout / 2

    # Registration.

    def register(self) -> bool:
        """Enters the worker, until that is answered; False: it was told to stop before."""
        body = {**self.worker.registration(), "registrationId": uuid.uuid4().hex}
        now = self.clock.now()
        self.entered = [at for at in self.entered if now - at <= 60]
        often = len(self.entered) - CRASH_COUNT
        if often >= 0 and self.stopping.wait(min(60.0, float(1 << min(often, 10)))):
            return False
        tried = 0
        while not self.stopping.is_set():
            sent = self.clock.now()
            try:
                self.enter(self.client.post("/v1/workers", body, tries=1, cancel=self.stopping), sent)
                return True
            except LubdubError as error:
                if self.stopping.is_set():
                    break
                if not may_retry(error):
                    self.outage.answered("registration")
                    raise
                self.outage.failed("registration", error)
                self.stopping.wait(wait_of(error) + backoff(tried, 30.0))
            tried += 1
        self.outage.dropped("registration")
        return False

    def enter(self, answer: Mapping[str, Any], sent: float) -> None:
        """Goes on under a registration."""
        self.outage.answered("registration")
        worker_id, token = plain(answer.get("workerId")), plain(answer.get("workerToken"))
        if not worker_id or not token:
            raise AnswerError("POST /v1/workers: there is no workerId or no workerToken in the answer")
        timeout = timeout_of(answer.get("heartbeatTimeoutMs"), 0)
        interval = interval_of(answer.get("heartbeatIntervalMs"), timeout, timeout / 3 or 10.0)
        timeout = timeout or 3 * interval
        waiting = answer.get("shouldDrain") is True
        session = Session(worker_id, token, interval, timeout, sent, waiting)
        self.logger.info(
            "Worker registered with ID: %s (queue %s, types %s)",
            session.worker_id,
            self.worker.queue,
            self.worker.types,
        )
        if waiting:
            machine = plain(answer.get("machineId")) or self.worker.registration().get("machineId")
            self.logger.info("Machine %s is drained; waiting until it is resumed", machine)
        if timeout < LEAST_TIMEOUT:
            self.logger.warning("A heartbeat timeout of %g s leaves no room for one Retry-After", timeout)
        with self.cond:
            self.session = session
            self.entered.append(self.clock.now())
            self.cond.notify_all()
        self.beats.enter(Session(session.worker_id, session.token, interval, timeout, sent, waiting))

    def come_back(self, old: str, why: str) -> bool:
        """Registers anew instead of a session that is gone. What is held goes on, and is listed by the new one. A refusal does not end it:
        a deployment that takes no token for a while must not end its workers."""
        with self.cond:
            while self.joining and not self.stopping.is_set():
                self.cond.wait()
            if self.stopping.is_set() or self.worker_id() != old:
                return not self.stopping.is_set()
            self.joining = True
        try:
            self.logger.warning("Worker %s is lost and registers anew: %s", old, why)
            tried = 0
            while not self.stopping.is_set():
                try:
                    return self.register()
                except LubdubError as error:
                    forced = forced_offline(error, old)
                    if forced is not None:
                        self.force_offline(forced)
                        return False
                    if tried == 0:
                        self.logger.error(
                            "Worker %s is refused registration, and asks again until it is not: %s", old, error
                        )
                self.stopping.wait(1 + backoff(tried, 30.0))
                tried += 1
            return False
        finally:
            with self.cond:
                self.joining = False
                self.cond.notify_all()

    # What beats tell.

    def gone(self, worker_id: str, text: str, forced: bool) -> None:
        if forced:
            self.force_offline(ForcedOffline(worker_id, f"lubdub worker resume {worker_id}"))
            return
        self.clock.spawn(lambda: (self.come_back(worker_id, text), None)[1], "lubdub-comes-back")

    def force_offline(self, why: ForcedOffline) -> None:
        """Ends all work as lost. Nothing is sent about it any more, and the worker does not come back."""
        with self.cond:
            first, self.forced = self.forced is None, self.forced or why
            self.fatal, self.leaving = self.forced, True
        if first:
            self.logger.error("%s", why)
        for attempt in list(self.attempts.values()):
            attempt.end(Lost("", "FORCED_OFFLINE"))
        for event in (self.left, self.soft, self.no_claims, self.stopping):
            event.set()
        self.beats.close()
        self.change()

    def waiting(self) -> bool:
        """Whether its machine is drained, and it claims nothing until that is resumed."""
        return self.session is not None and self.session.waiting

    def resumed(self, worker_id: str) -> None:
        with self.cond:
            session = self.session
            if session is None or session.worker_id != worker_id:
                return
            session.waiting = False
            self.cond.notify_all()
        self.logger.info("The machine is resumed, and worker %s claims tasks", worker_id)

    def drain(self, deadline: str) -> None:
        self.drain_now(f"until {deadline}" if deadline else "")

    def drain_now(self, until: str = "") -> None:
        """The server asks for it."""
        with self.cond:
            if not self.draining and not self.stopping.is_set():
                self.logger.info(
                    "Draining: the server asks for it (worker %s, %d active) %s",
                    self.worker_id(),
                    len(self.jobs),
                    until,
                )
            self.draining = True
            self.cond.notify_all()

    def worker_token(self, worker_id: str, token: str, timeout: float) -> None:
        session = self.session
        if session is not None and session.worker_id == worker_id:
            session.token, session.timeout = token or session.token, timeout

    def awake(self) -> None:
        self.seen = self.clock.now()

    # Tasks.

    def begin(self, envelope: Dict[str, Any]) -> None:
        """Has a task done. What comes too late for that is given back."""
        job = Job(self, envelope)
        with self.cond:
            self.beats.listed(job.task_id, job.number)
            if self.leaving:
                self.gives_back(job)
                return
            self.jobs.add(job)
            self.beats.active(len(self.jobs))
        guarded(self.metrics.running, len(self.jobs))
        try:
            self.clock.spawn(job.run, f"lubdub-task-{job.key}")
        except RuntimeError as error:  # there are too many threads
            self.logger.error("task %s was claimed and is not begun: %s", job.key, error)
            self.beats.release(job.key)
            self.leave(job)

    def leave(self, job: Job) -> None:
        """A task is done."""
        with self.cond:
            self.jobs.discard(job)
            self.beats.active(len(self.jobs))
            self.cond.notify_all()
        guarded(self.metrics.running, len(self.jobs))

    # The end.

    def gives_back(self, job: Job) -> None:
        """The deregistration gives a task back."""
        self.given_back[job.key] = job.task_id

    def keeps(self, key: str) -> None:
        """There is nothing to give back: the attempt is not ours."""
        self.given_back.pop(key, None)

    def lost(self, key: str, code: str, fields: Mapping[str, Any]) -> None:
        self.keeps(key)
        super().lost(key, code, fields)

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
                self.gives_back(job)

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

    def counted(self, state: str) -> None:
        """Adds to what the next beat says."""
        if state in ("SUCCEEDED", "FAILED"):
            self.beats.count(int(state == "SUCCEEDED"), int(state == "FAILED"))


__all__ = ["ApiError", "Runner", "Unfinished"]
