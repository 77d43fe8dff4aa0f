"""Beats from a child process, for work that holds the GIL: the same methods as those of Batch and WorkerBeats have, by a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import IO, Any, Dict, List, Optional, cast

from ._beats import Accepted, Beaten, Listener
from ._clock import Clock, backoff
from ._pipe import Outbox, listen
from ._workerbeats import Delta, Session
from .errors import ConfigurationError

PING_EVERY = 0.1  # seconds between signs of life
HELD_WITHIN = 10.0  # seconds for which a new attempt waits until the child beats for it


class IsolatedBatch:
    """Batch, in a child. A child that dies is started anew, with all that is held."""

    def __init__(self, config: Dict[str, Any], clock: Clock, listener: Listener, worker: bool = False, watched: bool = False) -> None:
        if not sys.executable:
            raise ConfigurationError("isolated=True needs sys.executable, to start a child with; this interpreter has none")
        self.config = {**config, "worker": worker, "watched": watched, "pid": os.getpid()}
        self.clock, self.listener = clock, listener
        self.cond = threading.Condition()
        self.held: Dict[str, Beaten] = {}
        self.released: Dict[int, int] = {}
        self.asked = self.deaths = 0
        self.outbox: Optional[Outbox] = None
        self.child: Optional["subprocess.Popen[bytes]"] = None
        self.closed = False

    # As the others have them.

    def hold(self, entry: Beaten) -> None:
        """Begins to beat for an attempt, and waits until the child knows of it: perhaps nothing runs here for a while after this."""
        with self.cond:
            self.held[entry.key] = entry
            if self.child is None:
                self.begin()
            else:
                self.tell(told(entry))
            self.asked += 1
            number = self.asked
            self.tell({"do": "release", "key": "", "number": number})  # answered after what was told before
            self.answered(number, HELD_WITHIN)

    def progress(self, key: str, pct: Optional[float], message: Optional[str], version: int, now: bool = False) -> None:
        """What is to be said with the next beat."""
        with self.cond:
            entry = self.held.get(key)
            if entry is None:
                return
            entry.pct, entry.message, entry.version = pct, message, version
            self.tell({"do": "progress", "key": key, "pct": pct, "message": message, "version": version, "now": now}, key)

    def release(self, key: str) -> int:
        """Sends nothing more for an attempt, and waits until nothing is under way."""
        with self.cond:
            self.held.pop(key, None)
            if self.child is None:
                return -1
            self.asked += 1
            number = self.asked
            self.tell({"do": "release", "key": key, "number": number})
            return self.answered(number)

    def answered(self, number: int, most: float = float("inf")) -> int:
        """Waits until the child has answered, or is another one. The lock is held."""
        child, end = self.child, time.monotonic() + most
        while number not in self.released and self.child is child and not self.closed and time.monotonic() < end:
            self.cond.wait(None if most == float("inf") else end - time.monotonic())
        return self.released.pop(number, -1)

    def drop(self, key: str) -> None:
        """Sends nothing more for an attempt."""
        with self.cond:
            if self.held.pop(key, None) is not None:
                self.tell({"do": "drop", "key": key})

    def close(self) -> None:
        """Ends the beats."""
        with self.cond:
            self.closed = True
            if self.outbox is not None:
                self.outbox.close()
            self.cond.notify_all()

    # The child.

    def tell(self, message: Dict[str, Any], newest: str = "") -> None:
        """Tells the child. The lock is held."""
        if self.outbox is not None:
            self.outbox.put(message, newest)

    def begin(self) -> None:
        """Starts a child. The lock is held."""
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.pathsep.join([here, os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else [here])
        child = subprocess.Popen(
            [sys.executable, "-m", "lubdub._beatd"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
        self.child, self.outbox = child, Outbox(cast(IO[bytes], child.stdin), "lubdub-tells")
        self.outbox.put(self.config)
        for message in self.state():
            self.outbox.put(message)
        threading.Thread(target=self.hear, args=(child, self.outbox), name="lubdub-hears", daemon=True).start()
        threading.Thread(target=self.ping, args=(child, self.outbox), name="lubdub-pings", daemon=True).start()

    def state(self) -> List[Dict[str, Any]]:
        """What a new child must know. The lock is held."""
        return [told(entry) for entry in self.held.values()]

    def ping(self, child: "subprocess.Popen[bytes]", outbox: Outbox) -> None:
        """Gives the child a sign of life now and then."""
        while True:
            with self.cond:
                self.cond.wait(PING_EVERY)
                if self.child is not child or self.closed:
                    return
            outbox.put({"do": "ping"}, "ping")

    def hear(self, child: "subprocess.Popen[bytes]", outbox: Outbox) -> None:
        """Hears what the child tells, until it ends."""
        listen(cast(IO[bytes], child.stdout), self.take)
        child.wait()
        cast(IO[bytes], child.stdout).close()
        outbox.close()
        with self.cond:
            self.cond.notify_all()
            if self.closed:
                self.child = None
                return
            self.deaths += 1
            self.released.clear()
            pause = backoff(self.deaths, 5.0)
        self.listener.log("error", f"the child process that beats has ended with {child.returncode}, and another one is started")
        self.clock.call_later(pause, self.begin_anew)

    def begin_anew(self) -> None:
        """Starts another child."""
        with self.cond:
            if not self.closed:
                self.begin()
                self.cond.notify_all()

    def take(self, m: Dict[str, Any]) -> None:
        """Takes in what the child tells."""
        on = m["on"]
        if on == "accepted":
            with self.cond:
                self.deaths = 0
                entry = self.held.get(m["key"])
                if entry is not None:
                    entry.delivered, entry.interval = m["version"], m["interval"] or entry.interval
                    entry.token = m["token"] or entry.token
            self.listener.accepted([Accepted(m["key"], m["sent"], m["version"], m["interval"], m["timeout"], m["token"], m["expires"])])
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
        elif on == "refused":
            self.listener.refused(m["code"])
        elif on == "log":
            self.listener.log(m["level"], m["text"])


class IsolatedWorkerBeats(IsolatedBatch):
    """WorkerBeats, in a child."""

    def __init__(self, config: Dict[str, Any], clock: Clock, listener: Listener, watched: bool = False) -> None:
        super().__init__(config, clock, listener, True, watched)
        self.session: Optional[Session] = None
        self.running = self.completed = self.failed = self.seq = 0
        self.unanswered: Optional[Delta] = None

    def enter(self, session: Session) -> None:
        """Beats for a registration from now on."""
        with self.cond:
            self.session, self.seq = session, 0
            if self.child is None:
                self.begin()
            else:
                self.tell(entered(session))

    def listed(self, task_id: str, attempt: int) -> None:
        """Has an attempt that was claimed in the inventory."""
        entry = Beaten(task_id, attempt)
        entry.started = False
        with self.cond:
            self.held[entry.key] = entry
            self.tell(told(entry))

    def active(self, running: int) -> None:
        """How many tasks are being done."""
        with self.cond:
            self.running = running
            self.tell({"do": "active", "running": running}, "active")

    def count(self, completed: int, failed: int) -> None:
        """Adds to what the next beat says."""
        with self.cond:
            self.completed, self.failed = self.completed + completed, self.failed + failed
            self.tell({"do": "count", "completed": completed, "failed": failed})

    def state(self) -> List[Dict[str, Any]]:
        waiting = self.unanswered
        known: List[Dict[str, Any]] = [entered(self.session)] if self.session is not None else []
        known += [
            {"do": "resume", "seq": self.seq, "unanswered": [waiting.seq, waiting.completed, waiting.failed] if waiting else None},
            {"do": "count", "completed": self.completed, "failed": self.failed}, {"do": "active", "running": self.running},
        ]
        return known + super().state()

    def take(self, m: Dict[str, Any]) -> None:
        on = m["on"]
        if on == "deltas":
            with self.cond:
                delta = Delta(m["seq"], m["completed"], m["failed"])
                fresh = self.unanswered is None or self.unanswered.seq != delta.seq
                if fresh and not m["answered"]:  # what was counted is in there now
                    self.completed, self.failed = self.completed - delta.completed, self.failed - delta.failed
                self.seq, self.unanswered = delta.seq, None if m["answered"] else delta
        elif on == "drain":
            self.listener.drain(m["deadline"])
        elif on == "gone":
            with self.cond:
                if self.session is not None and self.session.worker_id == m["workerId"]:
                    self.session = None
                    if self.unanswered is not None:  # refused, and so not counted
                        self.completed += self.unanswered.completed
                        self.failed += self.unanswered.failed
                        self.unanswered = None
            self.listener.gone(m["workerId"], m["text"])
        elif on == "workerToken":
            with self.cond:
                if self.session is not None and self.session.worker_id == m["workerId"]:
                    self.session.token, self.session.timeout = m["token"] or self.session.token, m["timeout"]
            self.listener.worker_token(m["workerId"], m["token"], m["timeout"])
        elif on == "awake":
            self.listener.awake()
        else:
            super().take(m)


def told(entry: Beaten) -> Dict[str, Any]:
    """How the child is told of an attempt."""
    if not entry.started:
        return {"do": "listed", "taskId": entry.task_id, "attempt": entry.attempt}
    return {"do": "hold", "taskId": entry.task_id, "attempt": entry.attempt, "token": entry.token, "interval": entry.interval,
            "timeout": entry.timeout, "pct": entry.pct, "message": entry.message, "version": entry.version, "delivered": entry.delivered}


def entered(session: Session) -> Dict[str, Any]:
    """How the child is told of a registration."""
    return {"do": "enter", "workerId": session.worker_id, "token": session.token, "interval": session.interval,
            "timeout": session.timeout, "accepted": session.accepted}


__all__ = ["IsolatedBatch", "IsolatedWorkerBeats"]
