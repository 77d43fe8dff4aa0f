"""Whatever step of a worker a stop interrupts, the worker ends and leaves nothing running."""

import logging
import random
import sys
import threading
from typing import Any, Callable, List, Optional

import lubdub
from lubdub._clock import Event
from lubdub._http import Response
from lubdub.task import Task
from lubdub.testing import Server

from .helpers import TestCase

MOST = (
    # seconds of the test's clock that a stop may take: 25 until the hard stop, plus calls that are not answered
    180.0
)


class Tapped(Server):
    """A server that calls back before and after it handles each request."""

    def __init__(self) -> None:
        super().__init__()
        self.moments = 0
        self.tap: Callable[[int], None] = lambda moment: None

    def send(self, *arguments: Any, **named: Any) -> Response:
        self.passed()
        try:
            return super().send(*arguments, **named)
        finally:
            self.passed()

    def passed(self) -> None:
        """Counts a step."""
        self.moments += 1
        self.tap(self.moments)


class Run:
    """A worker with some work that is acted on at one step."""

    def __init__(self, deed: str, moment: int) -> None:
        self.name, self.deed, self.moment = f"{deed} at moment {moment}", deed, moment
        self.server = Tapped()
        self.client = self.server.client()
        self.worker = lubdub.Worker("default", client=self.client, concurrency=2, soft_stop=10, hard_stop=15)
        self.worker.handle("t", self.handle)
        self.ended: List[Optional[BaseException]] = []
        self.begun_late: List[str] = []
        self.server.tap = lambda at: self.act() if at == moment else None

    def handle(self, task: Task) -> Any:
        if self.ended:
            self.begun_late.append(task.task_id)
        if task.payload == "fails":
            raise ValueError("no")
        if task.payload == "deaf":
            Event(self.server.clock).wait(40)
        else:
            task.wait(5)

    def act(self) -> None:
        """Acts on the worker."""
        server, worker = self.server, self.worker
        known = bool(server.store.workers)
        if self.deed.startswith("drain") and known:
            server.drain()
        elif self.deed.startswith("forget") and known:
            server.forget()
        elif self.deed.startswith("down"):
            server.down()
        elif self.deed == "shut":
            self.client.close()
        if self.deed.endswith("kill"):
            worker.kill()
        elif self.deed.endswith("close"):
            worker.close()

    def run(self) -> None:
        """Runs the worker."""
        try:
            self.worker.run(signals=False)
            self.ended.append(None)
        except BaseException as error:
            self.ended.append(error)

    def go(self) -> int:
        """Starts and ends it; returns the number of steps."""
        server = self.server
        for payload in ("fails", "waits", "deaf", "waits"):
            server.enqueue("t", payload)
        server.hand.spawn(self.run, "test-worker")
        server.advance(30)
        self.worker.close()  # in case it has not happened yet
        server.until(f"the worker ends: {self.name}", lambda: self.ended, MOST)
        moments, sent = server.moments, len(server.requests)
        server.until(f"no task is running: {self.name}", lambda: self.worker.active_count == 0, MOST)
        server.advance(MOST)
        late = [f"{r.method} {r.path}" for r in server.requests[sent:]]
        if late or self.begun_late or self.worker.registered:
            raise AssertionError(
                f"{self.name}: sent after its end: {late}; begun: {self.begun_late}; still registered: "
                f"{self.worker.registered}"
            )
        return moments


class Stops(TestCase):
    def setUp(self) -> None:
        super().setUp()
        log = logging.getLogger("lubdub.worker")
        self.addCleanup(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)

    def test_at_each_step(self) -> None:
        moments = Run("", 0).go()
        self.assertGreater(moments, 20)
        for deed in (
            "close",
            "kill",
            "drain",
            "drain, then kill",
            "forget",
            "forget, then close",
            "down",
            "down, then kill",
            "shut",
        ):
            for moment in range(1, moments + 1):
                Run(deed, moment).go()

    def test_at_any_moment(self) -> None:
        """Threads are scheduled as the system decides."""
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-5)
        chance = random.Random(7)
        for number in range(150):
            run = Run("", 0)
            run.server.hand.spawn(run.run, "test-worker")
            for _ in range(chance.randrange(4)):
                run.server.enqueue("t")
            for _ in range(chance.randrange(200)):
                threading.Event().wait(0)
            chance.choice((run.worker.close, run.worker.kill))()
            run.server.until(f"worker {number} ends", lambda run=run: run.ended, MOST)
            self.assertIsInstance(run.ended[0], (type(None), lubdub.Unfinished), number)


class Late(TestCase):
    """Answers that arrive only after the worker was stopped."""

    def late(self, run: Run, path: str, nth: int, deed: Callable[[], None]) -> List[str]:
        """Delays the answer to the nth request to a path by 3 s, after an action; returns the paths in the order of their answers."""
        answered: List[str] = []
        seen: List[str] = []

        def intercept(request: Any) -> None:
            if request.path.endswith(path):
                seen.append(path)
                if len(seen) == nth:
                    deed()
                    Event(run.server.clock).wait(3)
            answered.append(request.path.rsplit("/", 1)[1])

        run.server.intercept = intercept
        run.server.hand.spawn(run.run, "test-worker")
        return answered

    def ended(self, run: Run) -> None:
        run.server.until("the worker ends", lambda: run.ended, MOST)
        sent = len(run.server.requests)
        run.server.advance(MOST)
        self.assertEqual([r.path for r in run.server.requests[sent:]], [])
        self.assertFalse(run.worker.registered)

    def test_claimed_tasks_are_not_started_after_the_hard_stop(self) -> None:
        run = Run("a claim", 0)
        run.server.enqueue("t", "waits")
        answered = self.late(run, "/claim", 1, run.worker.kill)
        self.ended(run)
        self.assertNotIn("started", answered)

    def test_a_late_registration_is_deregistered_too(self) -> None:
        run = Run("a registration", 0)
        self.late(run, "/v1/workers", 2, run.worker.close)
        run.server.until("it is registered", lambda: run.worker.registered)
        run.server.forget()
        self.ended(run)
        self.assertEqual([w.status for w in run.server.store.workers.values()], ["OFFLINE"])

    def test_it_deregisters_after_the_heartbeat_in_flight(self) -> None:
        run = Run("a heartbeat", 0)
        answered: List[str] = []

        def intercept(request: Any) -> None:
            name = request.path.rsplit("/", 1)[1]
            if name == "heartbeat" and not answered.count("heartbeat"):
                run.worker.close()
                Event(run.server.clock).wait(1)
            answered.append(name)

        run.server.intercept = intercept
        run.server.hand.spawn(run.run, "test-worker")
        self.ended(run)
        self.assertEqual(answered[-2:], ["heartbeat", "deregister"])

    def test_it_deregisters_after_announcing_the_drain(self) -> None:
        run = Run("the drain", 0)
        for _ in range(2):
            run.server.enqueue("t", "waits")  # so that no place is free and no claim waits
        answered = self.late(run, "/drain", 1, lambda: None)
        run.server.until("they run", lambda: run.worker.active_count == 2)
        run.server.advance(4)
        run.worker.close()
        self.ended(run)
        self.assertEqual(answered[-2:], ["drain", "deregister"])
