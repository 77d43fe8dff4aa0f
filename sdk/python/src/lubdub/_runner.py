"""A worker at work: registration, claims, and the stop in good order."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Set, Union

from ._beats import Beaten
from ._call import path_of
from ._clock import MAX_PAUSE, Event, backoff
from ._hold import Ears, guarded
from ._isolated import IsolatedWorkerBeats
from ._job import Job
from ._probe import Probe
from ._workerbeats import Session, WorkerBeats, gone
from .attempt import LEAST_TIMEOUT, Holder
from .errors import ApiError, LubdubError, WorkerDraining, may_retry, wait_of

if TYPE_CHECKING:
    from .worker import Worker

CLAIM_WAIT = 30.0  # seconds for the first task
MAX_CLAIM = 100  # more than that no claim gets
LAST_WORDS = 5.0  # seconds that announcing a drain, giving back and deregistering may take each
CRASH_COUNT = 3  # registrations within a minute that are no crash loop


class Unfinished(LubdubError):
    """Tasks were not finished at the hard stop, and were given back."""

    def __init__(self, task_ids: List[str]) -> None:
        super().__init__(f"{len(task_ids)} tasks were not finished and were given back: {', '.join(task_ids)}")
        self.task_ids = task_ids


class WorkerHolder(Holder):
    """Beats for attempts by the worker's own beat."""

    def __init__(self, runner: "Runner") -> None:
        self.runner = runner

    def hold(self, entry: Beaten) -> None:
        self.runner.beats.hold(entry)

    def progress(self, key: str, pct: Optional[float], message: Optional[str], version: int, now: bool = False) -> None:
        self.runner.beats.progress(key, pct, message, version, now)

    def release(self, key: str) -> int:
        try:
            return self.runner.beats.release(key)
        finally:
            self.runner.attempts.pop(key, None)

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
        super().__init__(worker.client.metrics, worker.log)
        self.worker, self.client, self.clock = worker, worker.client, worker.client.caller.clock
        self.holder = WorkerHolder(self)
        self.cond = self.clock.condition()
        self.stopping, self.soft, self.hard = Event(self.clock), Event(self.clock), Event(self.clock)
        self.no_claims = Event(self.clock)
        self.session: Optional[Session] = None
        self.jobs: Set[Job] = set()
        self.entered: List[float] = []  # registrations of the last minute
        self.claiming = self.draining = self.joining = False
        self.fatal: Optional[LubdubError] = None
        self.probe_url = ""
        self.seen = self.clock.now()  # when the beats were awake last
        self.beats: Union[WorkerBeats, IsolatedWorkerBeats]
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.loop_lock = threading.Lock()

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
        probe = Probe(worker.probe, worker.probe_url, self.alive) if worker.probe is not None else None
        self.probe_url = probe.url if probe is not None else ""
        settings = self.isolation()
        self.beats = (
            WorkerBeats(self.client.caller, self, probe is not None) if settings is None
            else IsolatedWorkerBeats(settings, self.clock, self, probe is not None))
        try:
            if not self.register():
                return  # it was stopped before it began
            self.claiming = True
            self.clock.spawn(self.keep_claiming, "lubdub-claims")
            self.await_(lambda: self.stopping.is_set() or self.draining or self.fatal is not None)
            unfinished = self.finish()
            self.no_claims.set()
            self.beats.close()
            self.deregister()
        finally:
            self.stopping.set()
            self.no_claims.set()
            self.beats.close()
            if probe is not None:
                probe.close()
            if self.loop is not None:
                self.loop.call_soon_threadsafe(self.loop.stop)
        if unfinished:
            raise Unfinished(unfinished) from self.fatal
        if self.fatal is not None:
            raise self.fatal

    def isolation(self) -> Optional[Dict[str, Any]]:
        """The settings of a child process that beats; None: beats come from this process."""
        wanted = self.client.isolated if self.worker.isolated is None else self.worker.isolated
        settings = self.client.isolation() if wanted else None
        return {**settings, "urls": self.client.caller.endpoints.urls} if settings is not None else None

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
                    raise
                self.logger.warning("The worker could not register, and tries again: %s", error)
                self.stopping.wait(wait_of(error) + backoff(tried, 30.0))
            tried += 1
        return False

    def enter(self, answer: Mapping[str, Any], sent: float) -> None:
        """Goes on under a registration."""
        interval = float(answer.get("heartbeatIntervalMs") or 10_000) / 1000
        timeout = float(answer.get("heartbeatTimeoutMs") or 3000 * interval) / 1000
        session = Session(str(answer.get("workerId")), str(answer.get("workerToken")), interval, timeout, sent)
        self.logger.info("Worker registered with ID: %s (queue %s, types %s)", session.worker_id, self.worker.queue, self.worker.types)
        if timeout < LEAST_TIMEOUT:
            self.logger.warning("A heartbeat timeout of %g s leaves no room for one Retry-After", timeout)
        with self.cond:
            self.session = session
            self.entered.append(self.clock.now())
            self.cond.notify_all()
        self.beats.enter(Session(session.worker_id, session.token, interval, timeout, sent))

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
                    self.logger.error("The worker may not come back, and asks again: %s", error)
                self.stopping.wait(1 + backoff(tried, 30.0))
                tried += 1
            return False
        finally:
            with self.cond:
                self.joining = False
                self.cond.notify_all()

    # What beats tell.

    def gone(self, worker_id: str, text: str) -> None:
        self.clock.spawn(lambda: (self.come_back(worker_id, text), None)[1], "lubdub-comes-back")

    def drain(self, deadline: str) -> None:
        self.drain_now(f"until {deadline}" if deadline else "")

    def drain_now(self, until: str = "") -> None:
        """The server asks for it."""
        with self.cond:
            if not self.draining and not self.stopping.is_set():
                self.logger.info("Draining: the server asks for it (worker %s, %d active) %s", self.worker_id(), len(self.jobs), until)
            self.draining = True
            self.cond.notify_all()

    def worker_token(self, worker_id: str, token: str, timeout: float) -> None:
        session = self.session
        if session is not None and session.worker_id == worker_id:
            session.token, session.timeout = token or session.token, timeout

    def awake(self) -> None:
        self.seen = self.clock.now()

    # Claims.

    def keep_claiming(self) -> None:
        """Claims tasks and has them done, until the worker drains or is told to stop."""
        try:
            idle = 0
            while True:
                places = self.places()
                if places == 0:
                    return
                asked = self.clock.now()
                tasks = self.claim(places)
                if tasks is None:
                    return
                for envelope in tasks:
                    self.begin(envelope)
                waited = self.clock.now() - asked >= CLAIM_WAIT / 2
                idle = 0 if tasks or waited else idle + 1
                if idle:
                    self.stopping.wait(backoff(idle + 2, MAX_PAUSE))
        except LubdubError as error:
            self.fatal = error
        except BaseException as error:
            self.fatal = LubdubError(f"the claims have failed: {type(error).__name__}: {error}")
            self.logger.exception("the claims have failed")
        finally:
            with self.cond:
                self.claiming = False
                self.cond.notify_all()

    def places(self) -> int:
        """Waits for free places; 0: nothing is to be claimed any more."""
        def over() -> bool:
            return self.draining or self.fatal is not None or self.stopping.is_set()

        self.await_(lambda: over() or len(self.jobs) < self.worker.concurrency)
        return 0 if over() else min(self.worker.concurrency - len(self.jobs), MAX_CLAIM)

    def claim(self, places: int) -> Optional[List[Dict[str, Any]]]:
        """Asks for tasks until it is answered, under one id; None: there will be no more."""
        body = {"types": self.worker.types, "max": places, "waitMs": int(CLAIM_WAIT * 1000), "claimId": uuid.uuid4().hex}
        path = path_of("/v1/queues/{}/claim", (self.worker.queue,))
        tried = 0
        while not self.no_claims.is_set():
            session = self.session
            if session is None:
                return None
            try:
                answer = self.client.post(path, body, token=session.token, tries=1, waits=CLAIM_WAIT, cancel=self.no_claims)
                tasks: List[Dict[str, Any]] = answer.get("tasks") or []
                guarded(self.metrics.claimed, "ok", len(tasks))
                return tasks
            except LubdubError as error:
                if self.no_claims.is_set():
                    return None
                guarded(self.metrics.claimed, "unanswered" if may_retry(error) else "refused", 0)
                if isinstance(error, WorkerDraining):
                    self.drain_now()
                    return None
                if gone(error):
                    return [] if self.come_back(session.worker_id, str(error)) else None
                if not may_retry(error):
                    raise LubdubError(f"the worker's claims are refused: {error}") from error
                self.logger.warning("A claim was not answered, and is repeated: %s", error)
                self.no_claims.wait(wait_of(error) + backoff(tried, MAX_PAUSE))
            tried += 1
        return None

    def begin(self, envelope: Dict[str, Any]) -> None:
        """Has a task done."""
        self.beats.listed(str(envelope["taskId"]), int(envelope["attempt"]))
        job = Job(self, envelope)
        with self.cond:
            self.jobs.add(job)
            self.beats.active(len(self.jobs))
        guarded(self.metrics.running, len(self.jobs))
        self.clock.spawn(job.run, f"lubdub-task-{job.key}")

    def leave(self, job: Job) -> None:
        """A task is done."""
        with self.cond:
            self.jobs.discard(job)
            self.beats.active(len(self.jobs))
            self.cond.notify_all()
        guarded(self.metrics.running, len(self.jobs))

    def event_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of handlers that are coroutines."""
        with self.loop_lock:
            if self.loop is None:
                loop = self.loop = asyncio.new_event_loop()

                def run() -> None:
                    asyncio.set_event_loop(loop)
                    loop.run_forever()
                    loop.close()

                threading.Thread(target=run, name="lubdub-loop", daemon=True).start()
            return self.loop

    # The end.

    def idle(self) -> bool:
        """Whether nothing is at work, and no claim can bring more."""
        return not self.jobs and not self.claiming

    def finish(self) -> List[str]:
        """Waits for what is at work as long as there is time, and gives back what is left; its ids. Beats go on."""
        told = lambda: self.stopping.is_set() or self.fatal is not None  # noqa: E731
        if not told():  # the server has asked for the drain, and says itself when it takes back what is held
            self.await_(lambda: self.idle() or told() or self.hard.is_set())
            if not told():
                return []
        began = self.clock.now()
        self.clock.spawn(self.announce, "lubdub-drain")
        if self.await_(lambda: self.idle() or self.hard.is_set(), began + self.worker.soft_stop) and not self.hard.is_set():
            return []
        if not self.hard.is_set():
            self.logger.info("Handlers are cancelled: the soft stop has come (%d active)", len(self.jobs))
            self.soft.set()
            if self.await_(lambda: self.idle() or self.hard.is_set(), began + self.worker.hard_stop) and self.idle():
                return []
        self.soft.set()
        self.no_claims.set()
        return self.give_back()

    def announce(self) -> None:
        """Says that the worker drains; a claim that waits is answered by that, and is else given up."""
        session = self.session
        if session is not None and not self.draining:
            self.logger.info("Draining: the worker stops (worker %s, %d active)", session.worker_id, len(self.jobs))
            self.say("drain", session, {"reason": "it stops"})
        self.await_(lambda: not self.claiming or self.hard.is_set(), self.clock.now() + 1)
        self.no_claims.set()

    def say(self, act: str, session: Session, body: Dict[str, Any]) -> None:
        """Tells the server something, as far as anybody listens."""
        late = Event(self.clock)
        timer = self.clock.call_later(LAST_WORDS, late.set)
        try:
            self.client.post(path_of(f"/v1/workers/{{}}/{act}", (session.worker_id,)), body, token=session.token, cancel=late)
        except LubdubError as error:
            if not gone(error):
                self.logger.warning("The %s of worker %s could not be told: %s", act, session.worker_id, error)
        finally:
            timer.cancel()

    def give_back(self) -> List[str]:
        """Fails what still runs, so that others get it at once."""
        with self.cond:
            left = list(self.jobs)
        ids = [job.task_id for job in left]
        if not ids:
            return []
        self.logger.warning("What still runs is given back: the hard stop has come: %s", ", ".join(ids))
        late = Event(self.clock)
        timer = self.clock.call_later(LAST_WORDS, late.set)
        giving = [job for job in left if job.give_back(late, self.change)]
        self.await_(lambda: all(job.settled for job in giving), self.clock.now() + 2 * LAST_WORDS)
        timer.cancel()
        return ids

    def deregister(self) -> None:
        """Leaves."""
        session = self.session
        if session is None:
            return
        self.logger.info("Deregistering worker ID: %s", session.worker_id)
        self.say("deregister", session, {"drain": False, "reason": "it stops"})
        self.session = None

    def counted(self, state: str) -> None:
        """Adds to what the next beat says."""
        if state in ("SUCCEEDED", "FAILED"):
            self.beats.count(int(state == "SUCCEEDED"), int(state == "FAILED"))


__all__ = ["ApiError", "Runner", "Unfinished"]
