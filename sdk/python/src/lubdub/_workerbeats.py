"""A worker's own beat, with all that it holds."""

from __future__ import annotations

import random
from typing import Any, Dict, List, Optional, Tuple

from ._answers import interval_of, objects, plain, text, timeout_of, whole
from ._beats import LONGEST, MAX_BATCH, Accepted, Beaten, Beats, Listener, key_of
from ._call import Call, Caller, path_of, read, write
from ._clock import backoff
from .errors import ApiError, LubdubError, WorkerNotFound, WorkerOffline, forced_offline, wait_of


class Session:
    """One registration, as the beats see it."""

    def __init__(
        self, worker_id: str, token: str, interval: float, timeout: float, accepted: float, waiting: bool = False
    ) -> None:
        self.waiting = waiting  # its machine is drained: it claims nothing until that is resumed
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
    """Beats by POST /v1/workers/{id}/heartbeat. watched: the thread says each second that it is awake.

    An attempt whose completion is under way is in no inventory, and what two of them in a row miss the server takes for lost. In an outage
    a completion may be away for longer than that; so after one inventory that left it out beats go without any, until it is settled.
    Attempts that do not live by their worker's beat are then beaten for by themselves."""

    def __init__(self, caller: Caller, listener: Listener, watched: bool = False) -> None:
        super().__init__(caller, listener, "lubdub-worker-beats")
        self.session: Optional[Session] = None
        self.watched = watched
        self.due = 0.0
        self.last = 0.0  # when the last beat left
        self.seq = self.completed = self.failed = self.running = 0
        self.unanswered: Optional[Delta] = None
        self.ending: Dict[str, bool] = {}  # completions under way; True: an inventory has left the attempt out
        self.draining = self.refused_alone = False

    def enter(self, session: Session) -> None:
        """Beats for a registration from now on. What was refused with the one before was not counted, and is told anew; what is ending
        the new one does not hold."""
        with self.cond:
            self.session, self.seq, self.failures, self.until = session, 0, 0, 0.0
            self.due = session.accepted + spread(session.interval)
            delta, self.unanswered = self.unanswered, None
            if delta is not None:
                self.completed, self.failed = self.completed + delta.completed, self.failed + delta.failed
            self.ending.clear()
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

    def ends(self, key: str) -> None:
        self.ending[key] = False

    def settled(self, key: str) -> None:
        with self.cond:
            self.ending.pop(key, None)

    def stopping(self, hard: float) -> None:
        """The worker stops, and the hard stop comes in so many seconds."""

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
            if entry.own:
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
                "seq": delta.seq,
                "activeCount": running,
                "completedDelta": delta.completed,
                "failedDelta": delta.failed,
            }
            complete = self.complete(session) and not any(self.ending.values())
            if complete:
                body["tasks"] = [e.item() for e in batch]
                self.ending = dict.fromkeys(self.ending, True)
            else:
                for entry in batch:
                    entry.sending = entry.delivered  # it says nothing of their progress
            self.last = sent
        self.listener.deltas(delta.seq, delta.completed, delta.failed, False)
        try:
            answer = read(
                self.caller.make(
                    Call(
                        "POST",
                        path_of("/v1/workers/{}/heartbeat", (session.worker_id,)),
                        body=write(body),
                        token=session.token,
                        tries=1,
                        limit=min(self.caller.timeout, session.timeout / 3),
                    )
                )
            )
        except LubdubError as error:
            self.failed_beat(session, error, len(batch), self.clock.now() - sent)
            return
        self.listener.beat("ok", len(batch), self.clock.now() - sent)
        self.listener.answered("heartbeats")
        extended = self.heed(session, delta, batch if complete else [e for e in batch if not e.own], answer, sent)
        self.listener.log(
            "debug",
            f"Heartbeat sent successfully: worker {session.worker_id}, {running} active, leases extended: {extended}",
        )
        if not complete:
            self.each_alone(session, [e for e in batch if e.own])

    def complete(self, session: Session) -> bool:
        """Whether the entries are all that the worker holds."""
        return True

    def each_alone(self, session: Session, own: List[Beaten]) -> None:
        """Beats for attempts that do not live by their worker's beat, as if they had none."""
        for first in range(0, len(own), MAX_BATCH):
            batch = own[first : first + MAX_BATCH]
            sent = self.clock.now()
            with self.cond:
                if self.session is not session:
                    return
                items = [{**entry.item(), "taskToken": entry.token} for entry in batch]
            pause, result = 0.0, "ok"
            try:
                pause = self.take(
                    batch,
                    self.caller.make(
                        Call(
                            "POST",
                            "/v1/heartbeats",
                            body=write({"heartbeats": items}),
                            opened=False,
                            tries=1,
                            limit=min(self.caller.timeout, min(e.timeout for e in batch) / 3),
                        )
                    ),
                    sent,
                )
                self.listener.answered("heartbeats of tasks")
                self.refused_alone = False
            except LubdubError as error:
                result = self.result_of("heartbeats of tasks", error, not self.refused_alone)
                self.refused_alone = result == "refused"
                pause = wait_of(error) + backoff(self.failures, session.interval / 4)
            self.listener.beat(result, len(batch), self.clock.now() - sent)
            if pause > 0:
                with self.cond:
                    self.until = max(self.until, self.clock.now() + pause)

    def failed_beat(self, session: Session, error: LubdubError, attempts: int, took: float) -> None:
        """Takes in that a beat was not accepted."""
        lost = gone(error)
        self.listener.beat(self.result_of("heartbeats", error, self.failures == 0 and not lost), attempts, took)
        if isinstance(error, ApiError):
            self.listener.refused(error.code)
        with self.cond:
            if self.session is not session:
                return
            self.until = self.clock.now() + wait_of(error) + backoff(self.failures, session.interval / 4)
            self.failures += 1
            if lost:
                self.session = None
        if lost:
            self.listener.gone(session.worker_id, str(error), forced_offline(error, session.worker_id) is not None)

    def heed(self, session: Session, delta: Delta, batch: List[Beaten], answer: Dict[str, Any], sent: float) -> int:
        """Does what an answer asks for, and returns how many tasks' leases the heartbeat has extended."""
        lost = {key_of(text(x.get("taskId")), whole(x.get("attempt"))): x for x in objects(answer.get("lostTasks"))}
        token = plain(answer.get("workerToken"))
        accepted: List[Accepted] = []
        ended: List[Tuple[str, str]] = []
        with self.cond:
            if self.session is not session:
                return 0
            if self.unanswered is delta:
                self.unanswered = None
            session.timeout = timeout_of(answer.get("heartbeatTimeoutMs"), session.timeout)
            session.interval = interval_of(answer.get("heartbeatIntervalMs"), session.timeout, session.interval)
            session.token = token or session.token
            session.accepted, self.failures, self.until = sent, 0, 0.0
            self.due = sent + spread(session.interval)
            for entry in batch:
                if not entry.started or self.entries.get(entry.key) is not entry:
                    continue
                if entry.key in lost:
                    del self.entries[entry.key]
                    ended.append((entry.key, text(lost[entry.key].get("error"))))
                else:
                    entry.delivered = max(entry.delivered, entry.sending)
                    accepted.append(Accepted(entry.key, sent, entry.delivered, timeout=session.timeout))
        self.listener.deltas(delta.seq, delta.completed, delta.failed, True)
        self.listener.worker_token(session.worker_id, token, session.timeout)
        self.listener.accepted(accepted)
        for key, code in ended:
            self.listener.log("warning", f"Task {key} is lost: {code}")
            self.listener.lost(key, code, {})
        for one in objects(answer.get("cancelTasks")):
            self.listener.cancel(key_of(text(one.get("taskId")), whole(one.get("attempt"))), text(one.get("reason")))
        should = answer.get("shouldDrain")
        if session.waiting:
            if should is False:
                session.waiting = False
                self.listener.resumed(session.worker_id)
        elif should and not self.draining:
            self.draining = True
            self.listener.drain(text(answer.get("drainDeadline")))
        return len(accepted)


NOBODY = Beaten("", 0)  # so that a worker beats that holds nothing


def spread(interval: float) -> float:
    """Makes an interval a little shorter, by chance, so that a fleet that was started together does not beat as one."""
    return interval * (0.9 + random.random() / 10)


__all__ = ["Delta", "Session", "WorkerBeats", "gone"]
