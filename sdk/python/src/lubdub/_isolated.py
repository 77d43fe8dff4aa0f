"""Heartbeats from a child process, for work that holds the GIL. The classes have the methods of Batch and WorkerBeats, and forward the
calls through a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import IO, Any, Dict, List, Optional, Set, Tuple, cast

from . import _exit
from ._beats import Accepted, BeatEntry, Listener
from ._clock import Clock, backoff
from ._pipe import Outbox, listen
from ._workerbeats import Delta, Session
from .errors import ConfigurationError, LubdubError

PING_EVERY = 0.1  # seconds between two pings
HOLD_LIMIT = 10.0  # seconds that a new attempt waits until the child has it
GRACE = 5.0  # seconds that the child may take to answer


class IsolatedBatch:
    """A Batch in a child process. A child that exits or does not answer is replaced by a new one, which gets all attempts again."""

    def __init__(
        self, config: Dict[str, Any], clock: Clock, listener: Listener, worker: bool = False, watched: bool = False
    ) -> None:
        if not sys.executable:
            raise ConfigurationError(
                "isolated=True needs sys.executable, to start the heartbeat process; this interpreter has none"
            )
        self.config = {**config, "worker": worker, "watched": watched, "pid": os.getpid()}
        self.clock, self.listener = clock, listener
        self.cond = _exit.Condition()
        self.held: Dict[str, BeatEntry] = {}
        self.released: Dict[int, int] = {}
        self.requests = self.deaths = 0
        self.outbox: Optional[Outbox] = None
        self.child: Optional["subprocess.Popen[bytes]"] = None  # None: not started, or dead and about to be replaced
        self.begun = self.closed = False

    # The methods of Batch.

    def hold(self, entry: BeatEntry) -> None:
        """Starts heartbeats for an attempt, and waits until the child has it, since this process may be blocked right after."""
        with self.cond:
            self.held[entry.key] = entry
            if self.begun:
                self.send(entry_message(entry))
            else:
                self.begin()
            self.answered(self.ask({"do": "release", "key": "", "ending": False}), HOLD_LIMIT)  # after earlier messages

    def report(self, key: str, now: bool = False) -> None:
        """An attempt's report has changed."""
        with self.cond:
            entry = self.held.get(key)
            if entry is not None:
                self.send({"do": "report", "key": key, "report": entry.report, "now": now}, f"{key} {now}")

    def release(self, key: str, ending: bool = False) -> int:
        """Stops heartbeats for an attempt, and waits until no request is in flight. A child that does not confirm it is killed."""
        with self.cond:
            self.held.pop(key, None)
            if ending:
                self.ends(key)
            child, number = self.child, self.ask({"do": "release", "key": key, "ending": ending})
            within = float(self.config["timeout"]) + GRACE
            version = self.answered(number, within)
            silent = version is None and child is not None and self.child is child and not self.closed
            if silent and child is not None:
                child.kill()
                self.answered(number, GRACE)  # until it has exited
        if silent:
            self.listener.log("error", f"the heartbeat process has not answered within {within:g} s and is killed")
        return -1 if version is None else version

    def ends(self, key: str) -> None:
        """The completion of an attempt is about to be sent. The lock is held."""

    def settled(self, key: str) -> None:
        """The completion of an attempt was answered or abandoned."""

    def ask(self, message: Dict[str, Any], newest: str = "") -> int:
        """Sends the child a message that it answers by number. The lock is held."""
        self.requests += 1
        self.send({**message, "number": self.requests}, newest)
        return self.requests

    def answered(self, number: int, within: float) -> Optional[int]:
        """Waits until the child has answered or exited; None: no answer. The lock is held."""
        child, end = self.child, time.monotonic() + within
        while number not in self.released and child is not None and self.child is child and not self.closed:
            left = end - time.monotonic()
            if left <= 0:
                break
            self.cond.wait(left)
        return self.released.pop(number, None)

    def drop(self, key: str) -> None:
        """Stops heartbeats for an attempt."""
        with self.cond:
            if self.held.pop(key, None) is not None:
                self.send({"do": "drop", "key": key})

    def close(self) -> None:
        """Stops the heartbeats. The child exits when its input ends, or is killed."""
        with self.cond:
            self.closed = True
            if self.outbox is not None:
                self.outbox.close()
            if self.child is not None:
                self.clock.call_later(GRACE, self.child.kill)
            self.cond.notify_all()

    def rest(self, seconds: float) -> None:
        """Waits after close, at most for some seconds, until the child has exited."""
        end = time.monotonic() + seconds
        with self.cond:
            while self.child is not None and time.monotonic() < end:
                self.cond.wait(end - time.monotonic())

    # The child process.

    def send(self, message: Dict[str, Any], newest: str = "") -> None:
        """Sends the child a message. The lock is held."""
        if self.outbox is not None:
            self.outbox.put(message, newest)

    def begin(self) -> None:
        """Starts a child. The lock is held."""
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.pathsep.join([here, os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else [here])
        try:
            signals = self.config.get("signals")
            child = subprocess.Popen(
                [sys.executable, "-m", "lubdub._beatprocess"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[] if signals is None else [signals],
                env={**os.environ, "PYTHONPATH": path},
            )
        except OSError as error:
            raise LubdubError(f"the heartbeat process could not be started: {error}") from error
        outbox = Outbox(cast(IO[bytes], child.stdin), "lubdub-outbox")
        outbox.put(self.config)
        for message in self.state():
            outbox.put(message)
        self.begun, self.child, self.outbox = True, child, outbox
        _exit.start(lambda: self.receive(child, outbox), "lubdub-hears")
        _exit.start(lambda: self.ping(child, outbox), "lubdub-pings")

    def state(self) -> List[Dict[str, Any]]:
        """The messages that bring a new child up to date. The lock is held."""
        return [entry_message(entry) for entry in self.held.values()]

    def ping(self, child: "subprocess.Popen[bytes]", outbox: Outbox) -> None:
        """Pings the child regularly."""
        while True:
            with self.cond:
                self.cond.wait(PING_EVERY)
                if self.child is not child or self.closed:
                    return
            outbox.put({"do": "ping"}, "ping")

    def receive(self, child: "subprocess.Popen[bytes]", outbox: Outbox) -> None:
        """Receives the child's messages until it exits."""
        over = _exit.blocked(child.kill)
        try:
            listen(cast(IO[bytes], child.stdout), self.take)
            outbox.close()
            child.kill()  # in case it only closed its output
            child.wait()
        finally:
            over()
        cast(IO[bytes], child.stdout).close()
        _exit.check()
        with self.cond:
            self.child = self.outbox = None
            self.released.clear()
            self.cond.notify_all()
            if self.closed:
                return
        self.listener.log("error", f"the heartbeat process exited with {child.returncode}; starting a new one")
        self.restart_later()

    def restart_later(self) -> None:
        """Starts a new child after a pause."""
        with self.cond:
            self.deaths += 1
            pause = backoff(self.deaths, 5.0)
        self.clock.call_later(pause, self.restart)

    def restart(self) -> None:
        """Starts a new child."""
        try:
            with self.cond:
                if not self.closed and self.child is None:
                    self.begin()
        except (LubdubError, RuntimeError) as error:  # no process or thread can be started now: try again later
            self.listener.log("error", str(error))
            self.restart_later()

    def take(self, m: Dict[str, Any]) -> None:
        """Handles a message from the child."""
        on = m["on"]
        if on == "accepted":
            with self.cond:
                self.deaths = 0
                entry = self.held.get(m["key"])
                if entry is not None:
                    entry.deliver(m["version"])
                    entry.interval, entry.token = m["interval"] or entry.interval, m["token"] or entry.token
            self.listener.accepted(
                [Accepted(m["key"], m["sent"], m["version"], m["interval"], m["timeout"], m["token"], m["expires"])]
            )
        elif on == "released":
            with self.cond:
                self.released[m["number"]] = m["version"]
                self.cond.notify_all()
        elif on == "cancel":
            self.listener.cancel(m["key"], m["reason"])
        elif on == "lost":
            with self.cond:
                self.held.pop(m["key"], None)
            self.listener.lost(m["key"], m["code"], m["fields"])
        elif on == "beat":
            self.listener.beat(m["result"], m["attempts"], m["seconds"])
        elif on == "unanswered":
            self.listener.unanswered(m["what"], m["text"])
        elif on == "answered":
            self.listener.answered(m["what"])
        elif on == "refused":
            self.listener.refused(m["code"])
        elif on == "log":
            self.listener.log(m["level"], m["text"])


class IsolatedWorkerBeats(IsolatedBatch):
    """WorkerBeats in a child process."""

    def __init__(self, config: Dict[str, Any], clock: Clock, listener: Listener, watched: bool = False) -> None:
        super().__init__(config, clock, listener, True, watched)
        self.session: Optional[Session] = None
        self.running = self.completed = self.failed = self.seq = 0
        self.unanswered: Optional[Delta] = None
        self.ending: Set[str] = set()
        self.stop_at: Optional[float] = None  # when the hard stop is due

    def enter(self, session: Session) -> None:
        """Sends heartbeats for this registration from now on."""
        with self.cond:
            if self.closed:
                return
            self.session, self.seq = session, 0
            self.count_again()
            self.ending.clear()
            if self.begun:
                self.send({"do": "enter", **session_message(session)})
            else:
                self.begin()

    def count_again(self) -> None:
        """Counts refused deltas again. The lock is held."""
        delta, self.unanswered = self.unanswered, None
        if delta is not None:
            self.completed, self.failed = self.completed + delta.completed, self.failed + delta.failed

    def ends(self, key: str) -> None:
        self.ending.add(key)

    def settled(self, key: str) -> None:
        with self.cond:
            self.ending.discard(key)
            self.send({"do": "settled", "key": key})

    def listed(self, attempts: List[Tuple[str, int]]) -> None:
        """Adds the attempts of a claim to the inventory."""
        with self.cond:
            for task_id, attempt in attempts:
                entry = BeatEntry(task_id, attempt)
                entry.started = False
                self.held[entry.key] = entry
                self.send(entry_message(entry))

    def stopping(self, hard: float) -> None:
        """The worker stops, with the hard stop in this many seconds: the child enforces it if this process is blocked then."""
        with self.cond:
            self.stop_at = self.clock.now() + hard
            self.send({"do": "stopping", "hard": hard})

    def flush(self, seconds: float) -> None:
        """Has the child send reports that no heartbeat has sent."""
        with self.cond:
            if any(entry.unsent for entry in self.held.values()):
                # As a newest message it follows those with the reports.
                self.answered(self.ask({"do": "flush", "seconds": seconds}, "flush"), seconds + 1)

    def active(self, running: int) -> None:
        """Sets how many tasks are running."""
        with self.cond:
            self.running = running
            self.send({"do": "active", "running": running}, "active")

    def count(self, completed: int, failed: int) -> None:
        """Adds to the deltas of the next heartbeat."""
        with self.cond:
            self.completed, self.failed = self.completed + completed, self.failed + failed
            self.send({"do": "count", "completed": completed, "failed": failed})

    def state(self) -> List[Dict[str, Any]]:
        """The attempts come first: a heartbeat without some of them would have them declared lost."""
        known = super().state() + [{"do": "ending", "key": key} for key in self.ending]
        known += [
            {"do": "count", "completed": self.completed, "failed": self.failed},
            {"do": "active", "running": self.running},
        ]
        if self.stop_at is not None:
            known.append({"do": "stopping", "hard": max(0.0, self.stop_at - self.clock.now())})
        if self.session is not None:
            waiting = self.unanswered
            known.append(
                {
                    "do": "goOn",
                    **session_message(self.session),
                    "seq": self.seq,
                    "unanswered": [waiting.seq, waiting.completed, waiting.failed] if waiting else None,
                }
            )
        return known

    def take(self, m: Dict[str, Any]) -> None:
        on = m["on"]
        if on == "deltas":
            with self.cond:
                delta = Delta(m["seq"], m["completed"], m["failed"])
                fresh = self.unanswered is None or self.unanswered.seq != delta.seq
                if fresh and not m["answered"]:  # the deltas are included in it
                    self.completed, self.failed = self.completed - delta.completed, self.failed - delta.failed
                self.seq, self.unanswered = delta.seq, None if m["answered"] else delta
        elif on == "drain":
            self.listener.drain(m["deadline"])
        elif on == "gone":
            with self.cond:
                if self.session is not None and self.session.worker_id == m["workerId"]:
                    self.session = None
                    self.count_again()
            self.listener.gone(m["workerId"], m["text"], m["forced"])
        elif on == "resumed":
            with self.cond:
                if self.session is not None and self.session.worker_id == m["workerId"]:
                    self.session.waiting = False
            self.listener.resumed(m["workerId"])
        elif on == "workerToken":
            with self.cond:
                if self.session is not None and self.session.worker_id == m["workerId"]:
                    self.session.token, self.session.timeout = m["token"] or self.session.token, m["timeout"]
            self.listener.worker_token(m["workerId"], m["token"], m["timeout"])
        elif on == "awake":
            self.listener.awake()
        else:
            super().take(m)


def entry_message(entry: BeatEntry) -> Dict[str, Any]:
    """The message that describes an attempt."""
    if not entry.started:
        return {"do": "listed", "taskId": entry.task_id, "attempt": entry.attempt}
    return {
        "do": "hold",
        "taskId": entry.task_id,
        "attempt": entry.attempt,
        "token": entry.token,
        "interval": entry.interval,
        "timeout": entry.timeout,
        "report": entry.report,
        "delivered": entry.delivered,
        "limit": entry.limit,
    }


def session_message(session: Session) -> Dict[str, Any]:
    """The message that describes a registration."""
    return {
        "workerId": session.worker_id,
        "token": session.token,
        "interval": session.interval,
        "timeout": session.timeout,
        "accepted": session.accepted,
        "waiting": session.waiting,
    }


__all__ = ["IsolatedBatch", "IsolatedWorkerBeats"]
