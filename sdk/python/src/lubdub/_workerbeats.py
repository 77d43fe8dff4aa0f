"""A worker's own beat, with all that it holds."""

from __future__ import annotations

import random
from typing import Any, Dict, List, Optional, Tuple, cast

from ._beats import LONGEST, Accepted, Beaten, Beats, Listener, key_of
from ._call import Call, Caller, path_of, read, write
from ._clock import backoff
from .errors import ApiError, LubdubError, WorkerNotFound, WorkerOffline, may_retry, wait_of


class Session:
    """One registration, as the beats see it."""

    def __init__(self, worker_id: str, token: str, interval: float, timeout: float, accepted: float) -> None:
        self.worker_id, self.token, self.interval, self.timeout = worker_id, token, interval, timeout
        self.accepted = accepted  # when the last beat left that was accepted


class Delta:
    """What was counted, under its number."""

    def __init__(self, seq: int, completed: int, failed: int) -> None:
        self.seq, self.completed, self.failed = seq, completed, failed


def gone(error: BaseException) -> bool:
    """Whether an error says that the worker is not known any more, or not as one that may act: it must register anew."""
    return isinstance(error, (WorkerNotFound, WorkerOffline)) or (isinstance(error, ApiError) and error.status == 401)


class WorkerBeats(Beats):
    """Beats by POST /v1/workers/{id}/heartbeat. watched: the thread says each second that it is awake."""

    def __init__(self, caller: Caller, listener: Listener, watched: bool = False) -> None:
        super().__init__(caller, listener, "lubdub-worker-beats")
        self.session: Optional[Session] = None
        self.watched = watched
        self.due = 0.0
        self.last = 0.0  # when the last beat left
        self.seq = self.completed = self.failed = self.running = 0
        self.unanswered: Optional[Delta] = None
        self.draining = False

    def enter(self, session: Session) -> None:
        """Beats for a registration from now on. What was refused with the one before was not counted, and is told anew."""
        with self.cond:
            self.session, self.seq, self.failures, self.until = session, 0, 0, 0.0
            self.due = session.accepted + spread(session.interval)
            delta, self.unanswered = self.unanswered, None
            if delta is not None:
                self.completed, self.failed = self.completed + delta.completed, self.failed + delta.failed
            self.rouse()

    def listed(self, task_id: str, attempt: int) -> None:
        """Has an attempt that was claimed in the inventory, from before it has started."""
        entry = Beaten(task_id, attempt)
        entry.started = False
        with self.cond:
            self.entries[entry.key] = entry

    def hold(self, entry: Beaten) -> None:
        with self.cond:
            self.entries[entry.key] = entry
            self.rouse()  # it may want to be heard more often

    def active(self, running: int) -> None:
        """How many tasks are being done."""
        with self.cond:
            self.running = running

    def count(self, completed: int, failed: int) -> None:
        """Adds to what the next beat says."""
        with self.cond:
            self.completed, self.failed = self.completed + completed, self.failed + failed

    def hasten(self, entry: Beaten) -> None:
        self.due = min(self.due, max(self.clock.now(), self.last + 1))

    def over(self) -> bool:
        return self.closed

    def look(self, now: float) -> Tuple[List[Beaten], float]:
        self.listener.awake()
        wait = 1.0 if self.watched else LONGEST
        session = self.session
        if session is None:
            return [], wait
        due = self.due
        for entry in self.entries.values():
            if entry.started and entry.interval > 0:
                due = min(due, session.accepted + entry.interval * 0.9)
        due = max(due, self.until)
        if due > now:
            return [], min(wait, due - now)
        return [NOBODY, *self.entries.values()], 0

    def beat(self, batch: List[Beaten]) -> None:
        batch = batch[1:]
        sent = self.clock.now()
        with self.cond:
            session, running = self.session, self.running
            if session is None:
                return
            delta = self.unanswered
            if delta is None:
                self.seq += 1
                delta = self.unanswered = Delta(self.seq, self.completed, self.failed)
                self.completed = self.failed = 0
            body: Dict[str, Any] = {
                "seq": delta.seq, "activeCount": running, "completedDelta": delta.completed, "failedDelta": delta.failed}
            items = [e.item() for e in batch]
            complete = self.complete(session)
            if complete:
                body["tasks"] = items
            self.last = sent
        self.listener.deltas(delta.seq, delta.completed, delta.failed, False)
        try:
            answer = read(self.caller.make(Call(
                "POST", path_of("/v1/workers/{}/heartbeat", (session.worker_id,)), body=write(body), token=session.token, tries=1,
                limit=min(self.caller.timeout, session.timeout / 3))))
        except LubdubError as error:
            self.failed_beat(session, error, len(batch), self.clock.now() - sent)
            return
        self.listener.log("debug", f"Heartbeat sent successfully: worker {session.worker_id}, {running} active")
        self.listener.beat("ok", len(batch), self.clock.now() - sent)
        self.heed(session, delta, batch if complete else self.each_alone(session, batch, items), answer, sent)

    def complete(self, session: Session) -> bool:
        """Whether the entries are all that the worker holds."""
        return True

    def each_alone(self, session: Session, batch: List[Beaten], items: List[Dict[str, Any]]) -> List[Beaten]:
        """Beats for attempts that do not live by their worker's beat alone; returns whose beats were accepted."""
        own = [n for n, entry in enumerate(batch) if entry.started and entry.interval > 0]
        alive = [entry for entry in batch if entry.started and entry.interval == 0]
        for entry in alive:
            entry.sending = entry.delivered  # no progress was sent
        if not own:
            return alive
        try:
            answer = read(self.caller.make(Call(
                "POST", "/v1/heartbeats", body=write({"heartbeats": [items[n] for n in own]}), token=session.token, tries=1,
                limit=min(self.caller.timeout, session.timeout / 3))))
        except LubdubError as error:
            self.listener.log("warning", f"beats for {len(own)} attempts were not answered: {error}")
            return alive
        return alive + [batch[n] for n, result in zip(own, _objects(answer.get("results"))) if result.get("status") == 200]

    def failed_beat(self, session: Session, error: LubdubError, attempts: int, took: float) -> None:
        """Takes in that a beat was not accepted."""
        self.listener.beat("unanswered" if may_retry(error) else "refused", attempts, took)
        self.listener.log("warning", f"A heartbeat of worker {session.worker_id} was not accepted: {error}")
        if isinstance(error, ApiError):
            self.listener.refused(error.code)
        lost = gone(error)
        with self.cond:
            if self.session is not session:
                return
            self.until = self.clock.now() + wait_of(error) + backoff(self.failures, session.interval / 4)
            self.failures += 1
            if lost:
                self.session = None
        if lost:
            self.listener.gone(session.worker_id, str(error))

    def heed(self, session: Session, delta: Delta, batch: List[Beaten], answer: Dict[str, Any], sent: float) -> None:
        """Does what an answer asks for."""
        lost = {key_of(str(x.get("taskId")), int(x.get("attempt") or 0)): x for x in _objects(answer.get("lostTasks"))}
        accepted: List[Accepted] = []
        ended: List[Tuple[str, str]] = []
        with self.cond:
            if self.session is not session:
                return
            if self.unanswered is delta:
                self.unanswered = None
            session.interval = _seconds(answer.get("heartbeatIntervalMs")) or session.interval
            session.timeout = _seconds(answer.get("heartbeatTimeoutMs")) or session.timeout
            token = answer.get("workerToken")
            session.token = token if isinstance(token, str) and token else session.token
            session.accepted, self.failures, self.until = sent, 0, 0.0
            self.due = sent + spread(session.interval)
            for entry in batch:
                if not entry.started or self.entries.get(entry.key) is not entry:
                    continue
                if entry.key in lost:
                    del self.entries[entry.key]
                    ended.append((entry.key, str(lost[entry.key].get("error"))))
                else:
                    entry.delivered = max(entry.delivered, entry.sending)
                    accepted.append(Accepted(entry.key, sent, entry.delivered, timeout=session.timeout))
        self.listener.deltas(delta.seq, delta.completed, delta.failed, True)
        self.listener.worker_token(session.worker_id, token if isinstance(token, str) else "", session.timeout)
        self.listener.accepted(accepted)
        for key, code in ended:
            self.listener.log("warning", f"Task {key} is lost: {code}")
            self.listener.lost(key, code, {})
        for one in _objects(answer.get("cancelTasks")):
            self.listener.cancel(key_of(str(one.get("taskId")), int(one.get("attempt") or 0)), str(one.get("reason") or ""))
        if answer.get("shouldDrain") and not self.draining:
            self.draining = True
            self.listener.drain(str(answer.get("drainDeadline") or ""))


NOBODY = Beaten("", 0)  # so that a worker beats that holds nothing


def spread(interval: float) -> float:
    """Makes an interval a little shorter, by chance, so that a fleet that was started together does not beat as one."""
    return interval * (0.9 + random.random() / 10)


def _objects(value: Any) -> List[Dict[str, Any]]:
    return [x for x in cast(List[Any], value) if isinstance(x, dict)] if isinstance(value, list) else []


def _seconds(value: Any) -> float:
    return float(value) / 1000 if isinstance(value, (int, float)) and value > 0 else 0.0
