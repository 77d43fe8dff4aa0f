"""A worker's own heartbeat, with the inventory of its tasks."""

from __future__ import annotations

import random
from typing import Any, Dict, List, Optional, Tuple

from ._answers import interval_of, objects, plain, text, timeout_of, whole
from ._beats import LONGEST, MAX_BATCH, Accepted, BeatEntry, Beats, Listener, items_of, key_of
from ._call import Call, Caller, path_of, read, write
from ._clock import Event, backoff
from ._complete import persist
from ._entries import last_beat
from .ends import end_of_error
from .errors import ApiError, LubdubError, WorkerNotFound, WorkerOffline, forced_offline, wait_of

LAST_BEATS = 16  # heartbeats at the same time at a stop


class Session:
    """One registration."""

    def __init__(
        self,
        worker_id: str,
        token: str,
        interval: float,
        timeout: float,
        accepted: float,
        waiting: bool = False,
        exchange: bool = False,
    ) -> None:
        self.exchange = exchange  # the server takes completions together
        self.waiting = waiting  # its machine is drained: it does not claim until the machine is resumed
        self.worker_id, self.token, self.interval, self.timeout = worker_id, token, interval, timeout
        self.accepted = accepted  # when the last accepted heartbeat was sent


class Delta:
    """Completed and failed tasks, under a sequence number."""

    def __init__(self, seq: int, completed: int, failed: int) -> None:
        self.seq, self.completed, self.failed = seq, completed, failed


def gone(error: BaseException) -> bool:
    """Whether an error means that the worker is not registered, or may no longer act: it must register again."""
    return isinstance(error, (WorkerNotFound, WorkerOffline)) or (isinstance(error, ApiError) and error.status == 401)


class WorkerBeats(Beats):
    """Sends heartbeats with POST /v1/workers/{id}/heartbeat. watched: the thread reports every second that it is awake.

    An attempt that is being completed is in no inventory, and the server takes what two inventories in a row omit for lost. In an outage a
    completion may take longer than that. So after one inventory without it, heartbeats include no inventory until the completion is
    settled. Attempts with their own timeout then get separate heartbeats.
    """

    def __init__(self, caller: Caller, listener: Listener, watched: bool = False) -> None:
        super().__init__(caller, listener, "lubdub-worker-beats")
        self.session: Optional[Session] = None
        self.watched = watched
        self.due = 0.0
        self.last = 0.0  # when the last heartbeat was sent
        self.seq = self.completed = self.failed = self.running = 0
        self.unanswered: Optional[Delta] = None
        self.ending: Dict[str, bool] = {}  # completions in flight; True: an inventory has omitted the attempt
        self.draining = self.refused_separately = False

    def enter(self, session: Session) -> None:
        """Sends heartbeats for this registration from now on. Deltas that were refused with the previous one were not counted and are sent
        again; the new registration does not hold attempts that are ending."""
        with self.cond:
            self.session, self.seq, self.failures, self.until = session, 0, 0, 0.0
            self.due = session.accepted + spread(session.interval)
            delta, self.unanswered = self.unanswered, None
            if delta is not None:
                self.completed, self.failed = self.completed + delta.completed, self.failed + delta.failed
            self.ending.clear()
            self.wake_thread()

    def listed(self, attempts: List[Tuple[str, int]]) -> None:
        """Adds the attempts of a claim to the inventory before they have started."""
        with self.cond:
            for task_id, attempt in attempts:
                entry = BeatEntry(task_id, attempt)
                entry.started = False
                self.entries[entry.key] = entry

    def hold(self, entry: BeatEntry) -> None:
        with self.cond:
            self.entries[entry.key] = entry
            self.wake_thread()  # its interval may be shorter

    def ends(self, key: str) -> None:
        self.ending[key] = False

    def settled(self, key: str) -> None:
        with self.cond:
            self.ending.pop(key, None)

    def stopping(self, hard: float) -> None:
        """The worker stops, with the hard stop in this many seconds."""

    def active(self, running: int) -> None:
        """Sets how many tasks are running."""
        with self.cond:
            self.running = running

    def count(self, completed: int, failed: int) -> None:
        """Adds to the deltas of the next heartbeat."""
        with self.cond:
            self.completed, self.failed = self.completed + completed, self.failed + failed

    def beat_soon(self, entry: BeatEntry) -> None:
        self.due = min(self.due, max(self.clock.now(), self.last + 1))

    def flush(self, seconds: float) -> None:
        """Sends reports that no heartbeat has sent, in some seconds at most: the worker stops, and the next attempts need them. Each is
        sent alone, since another inventory could be the second one that omits an attempt whose completion was cut."""
        with self.cond:
            session, end = self.session, self.clock.now() + seconds
            for entry in self.entries.values():
                entry.last = True
            while self.in_flight and not self.closed and self.clock.now() < end:  # a heartbeat may include them already
                self.cond.wait(end - self.clock.now())
            unsent = {key: entry for key, entry in self.entries.items() if entry.unsent}
            todo = list(unsent.values())
        if session is None or self.closed or not todo:
            return
        late = Event(self.clock)
        errors: List[LubdubError] = []

        def send() -> None:
            while True:
                with self.cond:
                    if not todo or self.closed or late.is_set():
                        return
                    entry = todo.pop()
                error = self.send_last(entry, session, end, late)
                with self.cond:
                    if error is None:
                        del unsent[entry.key]
                    else:
                        errors.append(error)
                    self.cond.notify_all()

        try:
            for _ in range(min(LAST_BEATS, len(todo))):
                self.clock.spawn(send, "lubdub-last-beats")
        except RuntimeError:
            pass  # no more threads can be started
        with self.cond:
            while len(unsent) > len(errors) and not self.closed and self.clock.now() < end:
                self.cond.wait(end - self.clock.now())
            left, why = len(unsent), str(errors[0]) if errors else f"no answer within {seconds:g} s"
        late.set()
        if left:
            self.listener.log("warning", f"The last progress and checkpoints of {left} tasks were not sent: {why}")

    def send_last(self, entry: BeatEntry, session: Session, end: float, late: Event) -> Optional[LubdubError]:
        """Sends an attempt's report, and returns why it was not sent. An attempt that is over needs none."""
        version = entry.report.version
        if self.entries.get(entry.key) is not entry or not entry.unsent:
            return None
        try:
            persist(self.caller, last_beat(entry, session.token), end, session.timeout, late)
        except LubdubError as error:
            if not isinstance(error, ApiError) or end_of_error(error) is None:
                return error
            self.drop(entry.key)
            self.listener.lost(entry.key, error.code, error.fields)
        entry.deliver(version)
        return None

    def over(self) -> bool:
        return self.closed

    def timeout(self) -> float:
        own = [entry.timeout for entry in self.entries.values() if entry.own]
        return min([self.session.timeout, *own]) if self.session is not None else 0.0

    def look(self, now: float) -> Tuple[List[BeatEntry], float]:
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
        return [NO_ATTEMPT, *self.entries.values()], 0

    def beat(self, batch: List[BeatEntry]) -> None:
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
            written = write(body)
            complete = self.complete(session) and not any(self.ending.values())
            if complete:
                written = written[:-1] + b',"tasks":' + items_of(batch, tokens=False) + b"}"
                self.ending = dict.fromkeys(self.ending, True)
            else:
                for entry in batch:
                    entry.sending = entry.delivered  # it does not include their reports
            self.last = sent
        self.listener.deltas(delta.seq, delta.completed, delta.failed, False)
        try:
            answer = read(
                self.caller.make(
                    Call(
                        "POST",
                        path_of("/v1/workers/{}/heartbeat", (session.worker_id,)),
                        body=written,
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
        extended = self.apply_answer(
            session, delta, batch if complete else [e for e in batch if not e.own], answer, sent
        )
        self.listener.log(
            "debug",
            f"Heartbeat sent successfully: worker {session.worker_id}, {running} active, leases extended: {extended}",
        )
        if not complete:
            self.beat_separately(session, [e for e in batch if e.own])

    def complete(self, session: Session) -> bool:
        """Whether the entries are all that the worker holds."""
        return True

    def beat_separately(self, session: Session, own: List[BeatEntry]) -> None:
        """Sends separate heartbeats for attempts that have their own timeout."""
        for first in range(0, len(own), MAX_BATCH):
            batch = own[first : first + MAX_BATCH]
            sent = self.clock.now()
            with self.cond:
                if self.session is not session:
                    return
                items = items_of(batch)
            pause, result = 0.0, "ok"
            try:
                pause = self.take(
                    batch,
                    self.caller.make(
                        Call(
                            "POST",
                            "/v1/heartbeats",
                            body=b'{"heartbeats":' + items + b"}",
                            opened=False,
                            tries=1,
                            limit=min(self.caller.timeout, min(e.timeout for e in batch) / 3),
                        )
                    ),
                    sent,
                )
                self.listener.answered("heartbeats of tasks")
                self.refused_separately = False
            except LubdubError as error:
                result = self.result_of("heartbeats of tasks", error, not self.refused_separately)
                self.refused_separately = result == "refused"
                pause = wait_of(error) + backoff(self.failures, session.interval / 4)
            self.listener.beat(result, len(batch), self.clock.now() - sent)
            if pause > 0:
                with self.cond:
                    self.until = max(self.until, self.clock.now() + pause)

    def failed_beat(self, session: Session, error: LubdubError, attempts: int, took: float) -> None:
        """Handles a heartbeat that was not accepted."""
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

    def apply_answer(
        self, session: Session, delta: Delta, batch: List[BeatEntry], answer: Dict[str, Any], sent: float
    ) -> int:
        """Applies an answer, and returns how many tasks' leases the heartbeat extended."""
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
                    entry.deliver(entry.sending)
                    accepted.append(Accepted(entry.key, sent, entry.delivered, timeout=session.timeout))
        self.listener.deltas(delta.seq, delta.completed, delta.failed, True)
        self.listener.worker_token(session.worker_id, token, session.timeout)
        self.listener.accepted(accepted)
        for key, code in ended:
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


NO_ATTEMPT = BeatEntry("", 0)  # lets a worker without tasks send heartbeats


def spread(interval: float) -> float:
    """Shortens an interval slightly at random, so that a fleet that was started at the same time does not send its heartbeats in step."""
    return interval * (0.9 + random.random() / 10)


__all__ = ["Delta", "Session", "WorkerBeats", "gone"]
