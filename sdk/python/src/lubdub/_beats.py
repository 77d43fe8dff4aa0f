"""Heartbeats for tracked attempts: one request per tick for all of them, from one thread."""

from __future__ import annotations

import random
import threading
from typing import Any, Dict, List, Mapping, Set, Tuple

from ._answers import interval_of, objects, plain, seconds, seconds_between, text
from ._call import Call, Caller, read
from ._clock import FIRST_PAUSE, backoff
from ._endpoints import Endpoints
from ._entries import BeatEntry, items_of, key_of
from .ends import end_of
from .errors import MAX_RETRY_AFTER, AnswerError, LubdubError, NoAnswer, may_retry, wait_of

MAX_BATCH = 1000  # heartbeats per request
LONGEST = 3600.0  # seconds between two checks at most
LATE = 1.0  # seconds; a thread that is less late is not reported
CALM = 60.0  # seconds without delays after which another one is reported


class Withheld(NoAnswer):
    """Nothing was sent, since the process that does the work is stopped or blocked."""


class Accepted:
    """An accepted heartbeat. expires: in how many seconds of the server's clock the new token expires."""

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
    """Receives the results of heartbeats. Heartbeat threads call its methods, and hold no lock during the call."""

    def accepted(self, beats: List[Accepted]) -> None:
        """Heartbeats were accepted."""

    def cancel(self, key: str, reason: str) -> None:
        """Cancellation of an attempt was requested."""

    def lost(self, key: str, code: str, fields: Mapping[str, Any]) -> None:
        """A refusal reports that an attempt is no longer ours."""

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        """A request was made."""

    def unanswered(self, what: str, text: str) -> None:
        """A request was not answered and will be repeated."""

    def answered(self, what: str) -> None:
        """A request was answered."""

    def refused(self, code: str) -> None:
        """A heartbeat was refused."""

    def log(self, level: str, text: str) -> None:
        """Logs a line."""

    def drain(self, deadline: str) -> None:
        """The server asks the worker to drain."""

    def gone(self, worker_id: str, text: str, forced: bool) -> None:
        """The worker is no longer registered. forced: an operator forced it offline, and it must not register again."""

    def resumed(self, worker_id: str) -> None:
        """The drained machine that a worker registered on was resumed."""

    def worker_token(self, worker_id: str, token: str, timeout: float) -> None:
        """The worker has a new token ("" keeps the old one) and this heartbeat timeout."""

    def deltas(self, seq: int, completed: int, failed: int, answered: bool) -> None:
        """A worker's heartbeat with these deltas was sent or answered."""

    def awake(self) -> None:
        """The heartbeat loop is on time."""

    def late(self, seconds: float) -> None:
        """The heartbeat thread was ready to run for this long before it could, for the first time in a while."""


class Beats:
    """A thread that sends heartbeats while there are attempts. Subclasses build the requests."""

    def __init__(self, caller: Caller, listener: Listener, name: str) -> None:
        self.caller, self.clock, self.listener, self.name = caller, caller.clock, listener, name
        self.cond = self.clock.condition()
        self.entries: Dict[str, BeatEntry] = {}
        self.alive = self.closed = False
        self.thread = 0  # the id of the heartbeat thread
        self.in_flight: Set[
            str
        ] = set()  # keys in the request in flight; a worker's attempt has two entries, one after the other
        self.until = 0.0  # nothing is sent before this time, because of Retry-After
        self.failures = 0  # in a row

    def hold(self, entry: BeatEntry) -> None:
        """Starts heartbeats for an attempt."""
        with self.cond:
            entry.due = self.clock.now()
            self.entries[entry.key] = entry
            self.wake_thread()

    def wake_thread(self) -> None:
        """Wakes the thread, or starts it. The lock is held."""
        if not self.alive and not self.closed:
            self.alive = True
            self.clock.spawn(self.run, self.name)
        self.cond.notify_all()

    def report(self, key: str, now: bool = False) -> None:
        """An attempt's report has changed, and the next heartbeat includes it; now: send it within a second."""
        if now:
            with self.cond:
                entry = self.entries.get(key)
                if entry is not None:
                    self.beat_soon(entry)
                    self.wake_thread()

    def beat_soon(self, entry: BeatEntry) -> None:
        """Schedules a heartbeat soon, at most one a second. The lock is held."""
        entry.due = min(entry.due, max(self.clock.now(), entry.sent + 1))

    def release(self, key: str, ending: bool = False) -> int:
        """Stops heartbeats for an attempt, waits until no request in flight includes it, and returns the acknowledged version of its
        report. ending: its completion is being sent until settled is called."""
        with self.cond:
            entry = self.entries.pop(key, None)
            if ending:
                self.ends(key)
            while key in self.in_flight and self.alive and self.thread != threading.get_ident():
                self.cond.wait()
            self.cond.notify_all()
            return entry.delivered if entry is not None else -1

    def ends(self, key: str) -> None:
        """The completion of an attempt is about to be sent. The lock is held."""

    def settled(self, key: str) -> None:
        """The completion of an attempt was answered or abandoned."""

    def drop(self, key: str) -> None:
        """Stops heartbeats for an attempt without waiting for a request in flight."""
        with self.cond:
            self.entries.pop(key, None)

    def close(self) -> None:
        """Stops the heartbeats."""
        with self.cond:
            self.closed = True
            self.cond.notify_all()

    def rest(self, seconds: float) -> None:
        """Waits after close, at most for some seconds, until no request is in flight."""
        end = self.clock.now() + seconds
        with self.cond:
            while self.alive and self.clock.now() < end:
                self.cond.wait(end - self.clock.now())

    def run(self) -> None:
        """Sends heartbeats until there are no attempts left."""
        self.thread = threading.get_ident()
        late, limit, last = 0.0, LATE, -CALM
        try:
            while True:
                if late >= limit:
                    now = self.clock.awake()
                    if now - last >= CALM:
                        self.listener.late(late)
                    last = now
                late = 0.0
                with self.cond:
                    if self.over():
                        return
                    batch, wait = self.look(self.clock.now())
                    if not batch:
                        limit = max(LATE, self.timeout() / 6)
                        end = self.clock.awake() + max(0.0, wait)
                        self.cond.wait(max(0.0, wait))
                        late = self.clock.awake() - end
                        continue
                    self.in_flight = {entry.key for entry in batch}
                try:
                    self.beat(batch)
                except Exception as error:  # an error must not stop the heartbeats of other attempts
                    self.internal_error(error)
                finally:
                    with self.cond:
                        self.in_flight = set()
                        self.cond.notify_all()
        finally:
            with self.cond:
                self.alive = False
                self.cond.notify_all()

    def internal_error(self, error: Exception) -> None:
        """Handles an error within the SDK."""
        with self.cond:
            self.until = self.clock.now() + 1 + backoff(self.failures, MAX_ERROR_PAUSE)
            self.failures += 1
        self.listener.log(
            "error", f"a heartbeat failed in the SDK and will be retried: {type(error).__name__}: {error}"
        )

    def result_of(self, what: str, error: LubdubError, first: bool) -> str:
        """Returns the result of a failed request for the metrics, and logs it once until the result changes."""
        if isinstance(error, Withheld):
            self.listener.log("warning" if first else "debug", str(error))
            return "unanswered"
        if may_retry(error):
            self.listener.unanswered(what, str(error))
            return "unanswered"
        self.listener.answered(what)
        self.listener.log("warning" if first else "debug", f"Heartbeats are refused and will be retried: {error}")
        return "refused"

    def over(self) -> bool:
        """Whether the thread should end. The lock is held."""
        return self.closed or not self.entries

    def timeout(self) -> float:
        """The shortest heartbeat timeout. The lock is held."""
        return min((entry.timeout for entry in self.entries.values()), default=0.0)

    def look(self, now: float) -> Tuple[List[BeatEntry], float]:
        """Collects the attempts that are due; without any, returns how long to wait. The lock is held."""
        raise NotImplementedError

    def beat(self, batch: List[BeatEntry]) -> None:
        """Sends heartbeats and applies the answer."""
        raise NotImplementedError

    # The answer to POST /v1/heartbeats.

    def take(self, batch: List[BeatEntry], answer: bytes, sent: float) -> float:
        """Applies an answer, and returns how long the server asks to wait."""
        results = objects(read(answer).get("results"))
        if [text(result.get("taskId")) for result in results] != [entry.task_id for entry in batch]:
            raise AnswerError(f"POST /v1/heartbeats: expected one result for each of {len(batch)} heartbeats")
        pause = 0.0
        accepted: List[Accepted] = []
        notices: List[Tuple[BeatEntry, Dict[str, Any]]] = []
        with self.cond:
            for entry, result in zip(batch, results):
                status = result.get("status")
                if status == 200:
                    accepted.append(self.settle(entry, result, sent))
                    if result.get("shouldCancel"):
                        notices.append((entry, result))
                elif status in (429, 503):
                    pause = max(pause, FIRST_PAUSE, min(seconds(result.get("retryAfterMs")), MAX_RETRY_AFTER))
                else:
                    notices.append((entry, result))
                    self.again(entry, sent)
                    if end_of(text(result.get("error")), result) is not None:
                        self.entries.pop(entry.key, None)
        self.listener.accepted(accepted)
        for entry, result in notices:
            self.notify(entry, result)
        return pause

    def settle(self, entry: BeatEntry, result: Dict[str, Any], sent: float) -> Accepted:
        """Applies an accepted heartbeat. The lock is held."""
        entry.deliver(entry.sending)
        entry.warned = False
        entry.interval = interval_of(result.get("nextHeartbeatMs"), entry.timeout, entry.interval)
        found = Accepted(entry.key, sent, entry.delivered, entry.interval)
        token = plain(result.get("taskToken"))
        if token:
            entry.token = found.token = token
            found.expires = seconds_between(result.get("serverTime"), result.get("tokenExpiresAt"))
        self.again(entry, sent)
        return found

    def again(self, entry: BeatEntry, sent: float) -> None:
        """Schedules the next heartbeat. The lock is held."""

    def notify(self, entry: BeatEntry, result: Dict[str, Any]) -> None:
        """Notifies the listener of a cancel, a loss or a refusal."""
        if result.get("status") == 200:
            self.listener.cancel(entry.key, text(result.get("cancelReason")))
            return
        code = text(result.get("error"))
        self.listener.refused(code)
        if end_of(code, result) is not None:
            self.listener.lost(entry.key, code, result)
        elif not entry.warned:  # a refusal of this kind does not concern the attempt
            entry.warned = True
            self.listener.log(
                "error",
                f"a heartbeat for attempt {entry.attempt} of task {entry.task_id} is refused, and the work continues: "
                f"{result.get('status')} {code}: {text(result.get('message'))}",
            )


MAX_ERROR_PAUSE = 5.0


class Batch(Beats):
    """Sends heartbeats with POST /v1/heartbeats. Attempts due by the next tick share a request, so after its first heartbeat each attempt
    is part of the batch."""

    def __init__(self, caller: Caller, endpoints: Endpoints, listener: Listener) -> None:
        super().__init__(caller, listener, "lubdub-beats")
        self.endpoints = endpoints
        self.ticking = False  # some attempts that are due are not new
        # The share of an interval until the next tick. The first varies widely, to spread a fleet that starts at the same time.
        self.stretch = 0.5 + random.random() / 2

    def look(self, now: float) -> Tuple[List[BeatEntry], float]:
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

    def beat(self, batch: List[BeatEntry]) -> None:
        sent = self.clock.now()
        with self.cond:
            items = items_of(batch)
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
                    body=b'{"heartbeats":' + items + b"}",
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

    def again(self, entry: BeatEntry, sent: float) -> None:
        entry.fresh, entry.due = False, sent + entry.interval * self.stretch


__all__ = ["Accepted", "Batch", "BeatEntry", "Beats", "Listener", "Withheld", "items_of", "key_of"]
