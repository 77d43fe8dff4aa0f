"""The child process that sends heartbeats with isolated=True: python -m lubdub._beatprocess. It exits when its input ends, that is with the
parent. While the parent is stopped (SIGSTOP) it sends nothing, since no work is done then. While code in the parent holds the GIL it
enforces task limits and the hard stop."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Union

from ._beats import Accepted, Batch, BeatEntry, Beats, Listener, Withheld
from ._call import Call, Caller, path_of, write
from ._clock import Clock
from ._complete import persist, stamp
from ._http import HttpTransport, Response
from ._log import retry_of
from ._pipe import Outbox, listen
from ._endpoints import Endpoints, Token
from ._entries import Report, last_beat
from ._workerbeats import Delta, Session, WorkerBeats, spread
from .client import authorities
from .ends import TaskTimeout
from .errors import ApiError, LubdubError

SILENT = 1.0  # seconds without a message from the parent after which the parent counts as blocked
LOOK_EVERY = 0.2  # seconds
LAST_CALL_LIMIT = 5.0  # seconds that the deregistration may take
LAST_BEAT = 2.0  # seconds that sending the last reports may take


class ParentListener(Listener):
    """Forwards events to the parent."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox

    def accepted(self, beats: List[Accepted]) -> None:
        for b in beats:
            # A message with a new token must not be dropped in favour of a later one without.
            newest = "" if b.token else b.key
            self.outbox.put(
                {
                    "on": "accepted",
                    "key": b.key,
                    "sent": b.sent,
                    "version": b.version,
                    "interval": b.interval,
                    "timeout": b.timeout,
                    "token": b.token,
                    "expires": b.expires,
                },
                newest,
            )

    def cancel(self, key: str, reason: str) -> None:
        self.outbox.put({"on": "cancel", "key": key, "reason": reason})

    def lost(self, key: str, code: str, fields: Mapping[str, Any]) -> None:
        self.outbox.put({"on": "lost", "key": key, "code": code, "fields": dict(fields)})

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        self.outbox.put({"on": "beat", "result": result, "attempts": attempts, "seconds": seconds})

    def unanswered(self, what: str, text: str) -> None:
        self.outbox.put({"on": "unanswered", "what": what, "text": text})

    def answered(self, what: str) -> None:
        self.outbox.put({"on": "answered", "what": what})

    def refused(self, code: str) -> None:
        self.outbox.put({"on": "refused", "code": code})

    def log(self, level: str, text: str) -> None:
        self.outbox.put({"on": "log", "level": level, "text": text})

    def drain(self, deadline: str) -> None:
        self.outbox.put({"on": "drain", "deadline": deadline})

    def gone(self, worker_id: str, text: str, forced: bool) -> None:
        self.outbox.put({"on": "gone", "workerId": worker_id, "text": text, "forced": forced})

    def resumed(self, worker_id: str) -> None:
        self.outbox.put({"on": "resumed", "workerId": worker_id})

    def worker_token(self, worker_id: str, token: str, timeout: float) -> None:
        self.outbox.put(
            {"on": "workerToken", "workerId": worker_id, "token": token, "timeout": timeout},
            "" if token else "workerToken",
        )

    def deltas(self, seq: int, completed: int, failed: int, answered: bool) -> None:
        self.outbox.put({"on": "deltas", "seq": seq, "completed": completed, "failed": failed, "answered": answered})
        if not answered:  # the next child needs it if this heartbeat is the last
            self.outbox.flush()

    def awake(self) -> None:
        self.outbox.put({"on": "awake"}, "awake")


class ParentAwareTransport(HttpTransport):
    """Sends nothing while the parent is stopped or has sent no message for too long."""

    def __init__(self, *arguments: Any, parent: int, limit: float, clock: Clock) -> None:
        super().__init__(*arguments)
        self.parent, self.limit, self.clock = parent, limit, clock
        self.last_message = clock.now()

    def send(self, *arguments: Any, **named: Any) -> Response:
        if self.clock.now() - self.last_message > self.limit:
            raise Withheld(f"no heartbeats are sent: the parent process has been blocked for {self.limit:g} s")
        if stopped(self.parent):
            raise Withheld("no heartbeats are sent: the parent process is stopped")
        return super().send(*arguments, **named)


class DirectedWorkerBeats(WorkerBeats):
    """A worker's heartbeats, as the parent directs them. While the parent is blocked, a claim may have returned tasks that are unknown
    here. So no inventory is sent then: the server would take tasks that two of them omit for lost."""

    def __init__(self, caller: Caller, listener: Listener, watched: bool, parent: ParentAwareTransport) -> None:
        super().__init__(caller, listener, watched)
        self.parent = parent

    def resume(self, session: Session, seq: int, unanswered: Optional[Delta]) -> None:
        """Continues a registration that another child sent heartbeats for, with its sequence numbers."""
        with self.cond:
            self.session, self.seq, self.unanswered = session, seq, unanswered
            self.due = session.accepted + spread(session.interval)
            self.wake_thread()

    def complete(self, session: Session) -> bool:
        return self.clock.now() - self.parent.last_message < max(0.3, min(1.0, session.interval / 2))


class Limits:
    """Enforces limits when code in the parent holds the GIL and nothing else can run there."""

    def __init__(self, beats: DirectedWorkerBeats, caller: Caller, outbox: Outbox, config: Dict[str, Any]) -> None:
        self.beats, self.caller, self.outbox, self.parent = beats, caller, outbox, config["pid"]
        self.hard_stop: float = config["hard"]
        self.stop_at: Optional[float] = None  # when the hard stop is due
        if config["signals"] is not None:
            signals = socket.socket(fileno=config["signals"])
            threading.Thread(target=self.watch_signals, args=(signals,), daemon=True).start()

    def silent(self) -> bool:
        """Whether the parent is blocked, but not stopped."""
        return self.caller.clock.now() - self.beats.parent.last_message > SILENT and not stopped(self.parent)

    def limit(self, entry: BeatEntry, seconds: float) -> None:
        """Fails a task after some seconds unless the parent has completed it."""
        self.caller.clock.call_later(seconds + SILENT, lambda: self.look(entry))

    def look(self, entry: BeatEntry) -> None:
        """Fails an overdue task if the parent is blocked."""
        if self.beats.entries.get(entry.key) is not entry:
            return
        if self.silent():
            threading.Thread(target=self.fail, args=(entry,), daemon=True).start()
        else:
            self.limit(entry, 0)

    def fail(self, entry: BeatEntry) -> None:
        """Stops heartbeats for a task and completes it as failed."""
        session = self.beats.session
        self.beats.release(entry.key, True)
        body = {
            "attempt": entry.attempt,
            "outcome": "FAILED",
            "completedAt": stamp(self.caller.clock.wall()),
            "error": {"category": "TIMEOUT", "message": f"{TaskTimeout()}; its handler holds the GIL"},
            **({"workerId": session.worker_id} if session is not None else {}),
        }
        call = Call("POST", path_of("/v1/tasks/{}/completed", (entry.task_id,)), body=write(body), token=entry.token)
        answer: Dict[str, Any] = {}
        try:
            if entry.unsent:
                with contextlib.suppress(ApiError):  # the completion has the same answer if the attempt is over
                    self.persist(last_beat(entry, entry.token), entry, session)
            answer = self.persist(call, entry, session)
            then = retry_of(answer)
        except LubdubError as error:
            then = f"its completion was not accepted: {error}"
        self.beats.settled(entry.key)
        self.outbox.put(
            {
                "on": "lost",
                "key": entry.key,
                "code": "task_already_terminal",
                "fields": {"state": "FAILED", "reason": "TIMEOUT", "answer": answer},
            }
        )
        print(
            f"lubdub: Task {entry.task_id}, attempt {entry.attempt}, failed: {TaskTimeout()}; {then}. Its handler holds the GIL",
            file=sys.stderr,
            flush=True,
        )

    def persist(self, call: Call, entry: BeatEntry, session: Optional[Session]) -> Dict[str, Any]:
        """Retries a call until it is answered, with the worker's token if the task's is refused."""
        try:
            return persist(self.caller, call, None, entry.timeout)[0]
        except ApiError as error:
            if error.status != 401 or session is None:
                raise
            call.token = session.token
            return persist(self.caller, call, None, entry.timeout)[0]

    def watch_signals(self, signals: socket.socket) -> None:
        """Watches for signals that the parent does not handle, and ends the parent at the hard stop."""
        since: Optional[float] = None
        selector = selectors.DefaultSelector()
        selector.register(signals, selectors.EVENT_READ)
        while True:
            time.sleep(LOOK_EVERY)
            now = self.caller.clock.now()
            waiting = selector.select(0)
            found = signals.recv(64, socket.MSG_PEEK) if waiting else b""
            untaken = [number for number in found if number in (signal.SIGTERM, signal.SIGINT)]
            since = (since if since is not None else now) if untaken else None
            stops = [] if self.stop_at is None else [self.stop_at]
            if since is not None:
                stops.append(since + (self.hard_stop if len(untaken) == 1 else 0))
            if stops and now > min(stops) + SILENT and self.silent():
                self.end_parent()

    def end_parent(self) -> None:
        """Returns the worker's tasks to the queue and kills the parent."""
        session, held = self.beats.session, [entry.task_id for entry in list(self.beats.entries.values())]
        print(
            f"lubdub: Hard stop reached, and process {self.parent} does not respond: killing it"
            + (f"; tasks returned to the queue: {', '.join(held)}" if held else ""),
            file=sys.stderr,
            flush=True,
        )
        self.beats.flush(LAST_BEAT)
        self.beats.close()
        if session is not None:
            with contextlib.suppress(LubdubError):
                self.caller.make(
                    Call(
                        "POST",
                        path_of("/v1/workers/{}/deregister", (session.worker_id,)),
                        body=write({"drain": False, "reason": "it stops"}),
                        token=session.token,
                        tries=1,
                        limit=LAST_CALL_LIMIT,
                    )
                )
        os.kill(self.parent, signal.SIGKILL)
        os._exit(1)


def stopped(pid: int) -> bool:
    """Whether a process is stopped or gone, as far as the system shows."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t", b"Z", b"X")
    except (OSError, IndexError):
        return os.getppid() != pid


def main() -> None:
    """Sends heartbeats as the parent directs."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent gets the same signal and may work on for a while
    stdin, outbox = sys.stdin.buffer, Outbox(sys.stdout.buffer, "lubdub-outbox")
    config: Dict[str, Any] = json.loads(stdin.readline())
    clock = Clock()
    transport = ParentAwareTransport(
        authorities(config["caFile"]) if config["caFile"] else None,
        config["proxy"],
        parent=config["pid"],
        limit=config["limit"],
        clock=clock,
    )
    endpoints = Endpoints(config["urls"], config["allowHttp"])
    caller = Caller(endpoints, Token(""), transport, clock, config["agent"], config["timeout"], 1)
    listener = ParentListener(outbox)
    beats: Union[Batch, WorkerBeats] = (
        DirectedWorkerBeats(caller, listener, config["watched"], transport)
        if config["worker"]
        else Batch(caller, endpoints, listener)
    )
    limits = Limits(beats, caller, outbox, config) if isinstance(beats, DirectedWorkerBeats) else None

    def take(message: Dict[str, Any]) -> None:
        transport.last_message = clock.now()
        if message["do"] == "stopping" and limits is not None:
            limits.stop_at = clock.now() + message["hard"]
            return
        handle_message(beats, outbox, message)
        if limits is not None and message.get("limit"):
            limits.limit(beats.entries[f"{message['taskId']}/{message['attempt']}"], message["limit"])

    listen(stdin, take)
    os._exit(0)  # ends all threads with the parent


def handle_message(beats: Union[Batch, WorkerBeats], outbox: Outbox, m: Dict[str, Any]) -> None:
    """Handles a message from the parent."""
    do = m["do"]
    if do == "hold":
        Beats.hold(beats, entry_of(m)) if isinstance(beats, Batch) else beats.hold(entry_of(m))
    elif do == "report":
        with beats.cond:
            entry, report = beats.entries.get(m["key"]), Report(*m["report"])
            if entry is not None and report.version > entry.report.version:  # urgent messages may overtake others
                entry.report = report
        beats.report(m["key"], m["now"])
    elif do == "release":

        def release() -> None:
            outbox.put({"on": "released", "number": m["number"], "version": beats.release(m["key"], m["ending"])})

        threading.Thread(target=release, daemon=True).start()  # waits for a heartbeat in flight
    elif do == "settled":
        beats.settled(m["key"])
    elif do == "drop":
        beats.drop(m["key"])
    elif isinstance(beats, DirectedWorkerBeats):
        handle_worker_message(beats, outbox, m)


def handle_worker_message(beats: DirectedWorkerBeats, outbox: Outbox, m: Dict[str, Any]) -> None:
    """Handles a message that only workers get."""
    do = m["do"]
    if do == "enter":
        beats.enter(session_of(m))
    elif do == "goOn":
        beats.resume(session_of(m), m["seq"], Delta(*m["unanswered"]) if m["unanswered"] else None)
    elif do == "ending":  # started under an earlier child, which may have sent an inventory without it
        with beats.cond:
            beats.ending[m["key"]] = True
    elif do == "listed":
        beats.listed([(m["taskId"], m["attempt"])])
    elif do == "active":
        beats.active(m["running"])
    elif do == "count":
        beats.count(m["completed"], m["failed"])
    elif do == "flush":

        def flush() -> None:
            beats.flush(m["seconds"])
            outbox.put({"on": "released", "number": m["number"], "version": -1})

        threading.Thread(target=flush, daemon=True).start()


def session_of(m: Dict[str, Any]) -> Session:
    """The registration in a message."""
    return Session(m["workerId"], m["token"], m["interval"], m["timeout"], m["accepted"], m["waiting"])


def entry_of(m: Dict[str, Any]) -> BeatEntry:
    """The attempt in a message."""
    entry = BeatEntry(m["taskId"], m["attempt"], m["token"], m["interval"], m["timeout"])
    entry.report, entry.delivered = Report(*m["report"]), m["delivered"]
    return entry


if __name__ == "__main__":
    main()
