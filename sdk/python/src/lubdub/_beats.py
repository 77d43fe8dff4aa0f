"""Beats for attempts that a client tracks: one request a tick for all of them, from a thread of its own."""

from __future__ import annotations

import random
import threading
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from ._answers import interval_of, objects, plain, seconds, seconds_between, text
from ._call import Call, Caller, read, write
from ._clock import FIRST_PAUSE, backoff
from ._places import Endpoints
from .ends import end_of
from .errors import MAX_RETRY_AFTER, AnswerError, LubdubError, NoAnswer, may_retry, wait_of

MAX_BATCH = 1000  # beats that one request has at most
LONGEST = 3600.0  # seconds for which nobody looks


class Withheld(NoAnswer):
    """Nothing was sent, since nobody works in the process for which it would be."""


def key_of(task_id: str, attempt: int) -> str:
    """What names an attempt."""
    return f"{task_id}/{attempt}"


class Beaten:
    """An attempt as the one who beats for it sees it. interval is its own wish, in seconds; 0: as its worker."""

    __slots__ = (
        "key",
        "task_id",
        "attempt",
        "token",
        "interval",
        "timeout",
        "pct",
        "message",
        "version",
        "delivered",
        "sending",
        "due",
        "fresh",
        "warned",
        "sent",
        "started",
        "limit",
    )

    def __init__(self, task_id: str, attempt: int, token: str = "", interval: float = 0, timeout: float = 0) -> None:
        self.key, self.task_id, self.attempt = key_of(task_id, attempt), task_id, attempt
        self.token, self.interval, self.timeout = token, interval, timeout
        self.pct: Optional[float] = None
        self.message: Optional[str] = None
        self.version = (
            self.delivered
        ) = self.sending = 0  # of the progress: what was said, what was acknowledged, what is on the wire
        self.due = self.sent = 0.0
        self.fresh, self.warned, self.started = True, False, True
        self.limit = (
            0.0  # seconds after which a child process that beats fails it, if this one does not respond; 0: never
        )

    @property
    def own(self) -> bool:
        """Whether it lives by beats of its own, not by its worker's."""
        return self.started and self.interval > 0

    def item(self) -> Dict[str, Any]:
        """Its item of a request."""
        item: Dict[str, Any] = {"taskId": self.task_id, "attempt": self.attempt}
        self.sending = self.version
        if self.version != self.delivered:
            if self.pct is not None:
                item["progressPct"] = self.pct
            if self.message is not None:
                item["message"] = self.message
        return item


class Accepted:
    """A beat that was accepted. expires is in how many seconds of the clock's time the new token ends."""

    __slots__ = ("key", "sent", "interval", "timeout", "version", "token", "expires")

    def __init__(
        self,
        key: str,
        sent: float,
        version: int,
        interval: float = 0,
        timeout: float = 0,
        token: str = "",
        expires: float = 0,
    ):
        self.key, self.sent, self.version, self.interval, self.timeout = key, sent, version, interval, timeout
        self.token, self.expires = token, expires


class Listener:
    """Is told what answers to beats say. Its methods are called from threads of the beats, which hold no lock then."""

    def accepted(self, beats: List[Accepted]) -> None:
        """Beats were accepted."""

    def cancel(self, key: str, reason: str) -> None:
        """The end of an attempt is asked for."""

    def lost(self, key: str, code: str, fields: Mapping[str, Any]) -> None:
        """An attempt is not ours any more, as a refusal says."""

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        """A request was made."""

    def unanswered(self, what: str, text: str) -> None:
        """A request of a kind was not answered, and is repeated."""

    def answered(self, what: str) -> None:
        """A request of a kind was answered."""

    def refused(self, code: str) -> None:
        """A beat was refused."""

    def log(self, level: str, text: str) -> None:
        """Something is to be logged."""

    def drain(self, deadline: str) -> None:
        """The server asks the worker to drain."""

    def gone(self, worker_id: str, text: str, forced: bool) -> None:
        """The worker is not known any more. forced: an operator forced it offline, and it must not come back."""

    def resumed(self, worker_id: str) -> None:
        """The machine of a worker that registered on a drained one is resumed."""

    def worker_token(self, worker_id: str, token: str, timeout: float) -> None:
        """The worker has a new token, or "" for the same, and may be silent for so long."""

    def deltas(self, seq: int, completed: int, failed: int, answered: bool) -> None:
        """A worker's beat with these deltas was sent, or answered."""

    def awake(self) -> None:
        """The beats are on time."""


class Beats:
    """A thread that beats while there is somebody to beat for. Subclasses say what is sent."""

    def __init__(self, caller: Caller, listener: Listener, name: str) -> None:
        self.caller, self.clock, self.listener, self.name = caller, caller.clock, listener, name
        self.cond = self.clock.condition()
        self.entries: Dict[str, Beaten] = {}
        self.alive = self.closed = False
        self.thread = 0  # that which beats
        self.flying: Set[
            str
        ] = set()  # whom a request names that is under way; a worker's attempt has two entries, one after the other
        self.until = 0.0  # nothing is sent before: the server does not answer
        self.failures = 0  # in a row

    def hold(self, entry: Beaten) -> None:
        """Begins to beat for an attempt."""
        with self.cond:
            entry.due = self.clock.now()
            self.entries[entry.key] = entry
            self.rouse()

    def rouse(self) -> None:
        """Has the thread look anew, and starts it where there is none. The lock is held."""
        if not self.alive and not self.closed:
            self.alive = True
            self.clock.spawn(self.run, self.name)
        self.cond.notify_all()

    def progress(self, key: str, pct: Optional[float], message: Optional[str], version: int, now: bool = False) -> None:
        """What is to be said with the next beat; now: at most a second later."""
        with self.cond:
            entry = self.entries.get(key)
            if entry is None:
                return
            entry.pct = pct if pct is not None else entry.pct
            entry.message = message if message is not None else entry.message
            entry.version = version
            if now:
                self.hasten(entry)
                self.rouse()

    def hasten(self, entry: Beaten) -> None:
        """Has a beat sent soon, at most one a second. The lock is held."""
        entry.due = min(entry.due, max(self.clock.now(), entry.sent + 1))

    def release(self, key: str, ending: bool = False) -> int:
        """Sends nothing more for an attempt, and returns once no request is under way that names it: with the version of its progress
        that was acknowledged. ending: its completion is sent from now on, until settled is called."""
        with self.cond:
            entry = self.entries.pop(key, None)
            if ending:
                self.ends(key)
            while key in self.flying and self.alive and self.thread != threading.get_ident():
                self.cond.wait()
            self.cond.notify_all()
            return entry.delivered if entry is not None else -1

    def ends(self, key: str) -> None:
        """An attempt's completion is about to be sent. The lock is held."""

    def settled(self, key: str) -> None:
        """An attempt's completion is answered, or given up."""

    def drop(self, key: str) -> None:
        """Sends nothing more for an attempt; what is under way is not waited for."""
        with self.cond:
            self.entries.pop(key, None)

    def close(self) -> None:
        """Ends the beats."""
        with self.cond:
            self.closed = True
            self.cond.notify_all()

    def rest(self, seconds: float) -> None:
        """Waits, after close, until no request is under way, but not for long."""
        end = self.clock.now() + seconds
        with self.cond:
            while self.alive and self.clock.now() < end:
                self.cond.wait(end - self.clock.now())

    def run(self) -> None:
        """Beats until there is nobody left to beat for."""
        self.thread = threading.get_ident()
        try:
            while True:
                with self.cond:
                    if self.over():
                        return
                    batch, wait = self.look(self.clock.now())
                    if not batch:
                        self.cond.wait(max(0.0, wait))
                        continue
                    self.flying = {entry.key for entry in batch}
                try:
                    self.beat(batch)
                except Exception as error:  # whatever it is, neighbours and the next tick must not suffer
                    self.stumble(error)
                finally:
                    with self.cond:
                        self.flying = set()
                        self.cond.notify_all()
        finally:
            with self.cond:
                self.alive = False
                self.cond.notify_all()

    def stumble(self, error: Exception) -> None:
        """Something went wrong that is a fault of the SDK."""
        with self.cond:
            self.until = self.clock.now() + 1 + backoff(self.failures, MAX_STUMBLE)
            self.failures += 1
        self.listener.log("error", f"a beat failed within the SDK, and is repeated: {type(error).__name__}: {error}")

    def result_of(self, what: str, error: LubdubError, first: bool) -> str:
        """What a request of a kind that failed has come to; it is logged once while that does not change."""
        if isinstance(error, Withheld):
            self.listener.log("warning" if first else "debug", str(error))
            return "unanswered"
        if may_retry(error):
            self.listener.unanswered(what, str(error))
            return "unanswered"
        self.listener.answered(what)
        self.listener.log("warning" if first else "debug", f"Heartbeats are refused, and repeated: {error}")
        return "refused"

    def over(self) -> bool:
        """Whether to end. The lock is held."""
        return self.closed or not self.entries

    def look(self, now: float) -> Tuple[List[Beaten], float]:
        """Collects whose beats are to be sent now; else says how long there is nothing to look at. The lock is held."""
        raise NotImplementedError

    def beat(self, batch: List[Beaten]) -> None:
        """Sends beats and takes the answer in."""
        raise NotImplementedError

    # The answer to POST /v1/heartbeats.

    def take(self, batch: List[Beaten], answer: bytes, sent: float) -> float:
        """Takes an answer in, and returns for how long the server asks to be left alone."""
        results = objects(read(answer).get("results"))
        if [text(result.get("taskId")) for result in results] != [entry.task_id for entry in batch]:
            raise AnswerError(f"POST /v1/heartbeats: not one result for each of {len(batch)} beats")
        pause = 0.0
        accepted: List[Accepted] = []
        told: List[Tuple[Beaten, Dict[str, Any]]] = []
        with self.cond:
            for entry, result in zip(batch, results):
                status = result.get("status")
                if status == 200:
                    accepted.append(self.settle(entry, result, sent))
                    if result.get("shouldCancel"):
                        told.append((entry, result))
                elif status in (429, 503):
                    pause = max(pause, FIRST_PAUSE, min(seconds(result.get("retryAfterMs")), MAX_RETRY_AFTER))
                else:
                    told.append((entry, result))
                    self.again(entry, sent)
                    if end_of(text(result.get("error")), result) is not None:
                        self.entries.pop(entry.key, None)
        self.listener.accepted(accepted)
        for entry, result in told:
            self.tell(entry, result)
        return pause

    def settle(self, entry: Beaten, result: Dict[str, Any], sent: float) -> Accepted:
        """Takes an accepted beat in. The lock is held."""
        entry.delivered = max(entry.delivered, entry.sending)
        entry.warned = False
        entry.interval = interval_of(result.get("nextHeartbeatMs"), entry.timeout, entry.interval)
        found = Accepted(entry.key, sent, entry.delivered, entry.interval)
        token = plain(result.get("taskToken"))
        if token:
            entry.token = found.token = token
            found.expires = seconds_between(result.get("serverTime"), result.get("tokenExpiresAt"))
        self.again(entry, sent)
        return found

    def again(self, entry: Beaten, sent: float) -> None:
        """Says when the next beat is due. The lock is held."""

    def tell(self, entry: Beaten, result: Dict[str, Any]) -> None:
        """Says what an answer means for an attempt."""
        if result.get("status") == 200:
            self.listener.cancel(entry.key, text(result.get("cancelReason")))
            return
        code = text(result.get("error"))
        self.listener.refused(code)
        if end_of(code, result) is not None:
            self.listener.lost(entry.key, code, result)
        elif not entry.warned:  # that a beat is refused in this way says nothing about the attempt
            entry.warned = True
            self.listener.log(
                "error",
                f"a beat for attempt {entry.attempt} of task {entry.task_id} is refused, and the work goes on: "
                f"{result.get('status')} {code}: {text(result.get('message'))}",
            )


MAX_STUMBLE = 5.0


class Batch(Beats):
    """Beats by POST /v1/heartbeats. Attempts that are due by the next tick go together, so that after its first beat each is part of
    the crowd."""

    def __init__(self, caller: Caller, endpoints: Endpoints, listener: Listener) -> None:
        super().__init__(caller, listener, "lubdub-beats")
        self.endpoints = endpoints
        self.ticking = False  # some are due that are not new
        # Of intervals, until the next tick; the first time by much, so that a fleet that starts together spreads.
        self.stretch = 0.5 + random.random() / 2

    def look(self, now: float) -> Tuple[List[Beaten], float]:
        if self.until > now:
            return [], self.until - now
        least = min(e.interval for e in self.entries.values())
        ticks = any(not e.fresh and e.due <= now for e in self.entries.values())
        if ticks and not self.ticking:
            self.stretch = 0.9 + random.random() / 10
            for entry in self.entries.values():
                if entry.due < now + least:
                    entry.due = now
        self.ticking = ticks
        due = [e for e in self.entries.values() if e.due <= now][:MAX_BATCH]
        return due, (0 if due else min(min(e.due for e in self.entries.values()) - now, LONGEST))

    def beat(self, batch: List[Beaten]) -> None:
        sent = self.clock.now()
        with self.cond:
            items = [{**e.item(), "taskToken": e.token} for e in batch]
            limit = min(self.caller.timeout, min(e.timeout for e in batch) / 3)
            patience = min(20.0, min(e.interval for e in batch)) / 4
            for entry in batch:
                entry.sent = sent
        result, pause = "ok", 0.0
        try:
            answer = self.caller.make(
                Call(
                    "POST",
                    "/v1/heartbeats",
                    body=write({"heartbeats": items}),
                    endpoints=self.endpoints,
                    opened=False,
                    tries=1,
                    limit=limit,
                )
            )
            pause = self.take(batch, answer, sent)
            self.failures = 0
            self.listener.answered("heartbeats")
        except LubdubError as error:
            result = self.result_of("heartbeats", error, self.failures == 0)
            pause = max(wait_of(error) + backoff(self.failures, patience), 0.001)
            self.failures += 1
        self.listener.beat(result, len(batch), self.clock.now() - sent)
        if pause > 0:
            with self.cond:
                self.until = self.clock.now() + pause

    def again(self, entry: Beaten, sent: float) -> None:
        entry.fresh, entry.due = False, sent + entry.interval * self.stretch


__all__ = ["Accepted", "Batch", "Beaten", "Beats", "Listener", "Withheld", "key_of"]
