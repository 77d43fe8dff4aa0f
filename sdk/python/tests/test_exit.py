"""The process ends while threads of the SDK run: none is left when the interpreter shuts down."""

import contextvars
import os
import subprocess
import sys
import threading
from typing import Any, List
from unittest import mock

from lubdub import _exit
from lubdub._call import CANCEL, cancelled_by
from lubdub._clock import Clock, Event

from .helpers import HERE, PATIENCE, Answer, ReceivedRequest, TestCase

PROGRAM = """
import atexit, sys, threading

def left():  # was registered before the SDK's own, and so is called after it
    names = sorted(t.name for t in threading.enumerate() if t.name.startswith(("lubdub", "user")))
    print("left:", names, flush=True)

atexit.register(left)
import logging
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
logging.getLogger("asyncio").setLevel(logging.INFO)  # hides its debug messages about loops that were woken while closing
import lubdub
from lubdub import _exit

_exit.LAST = 60.0  # the machine may be busy
client = lubdub.Client(sys.argv[1], token="x", timeout=30, isolated=sys.argv[2] == "isolated")
envelope = {"taskId": "t", "attempt": 1, "taskToken": "y", "heartbeatIntervalMs": 1000, "heartbeatTimeoutMs": 100000}
attempt = client.track(envelope).start()
worker = lubdub.Worker("q", client=client, probe="127.0.0.1:0")
begun = threading.Semaphore(0)

@worker.handler("waits")
def waits(task):
    begun.release()
    task.wait(1000)

@worker.handler("awaits")
async def awaits(task):
    import asyncio
    begun.release()
    await asyncio.sleep(1000)

threading.Thread(target=lambda: worker.run(signals=False), name="user-worker", daemon=True).start()
print("begun:", begun.acquire(timeout=30) and begun.acquire(timeout=30), flush=True)
"""


class Inheriting(threading.Thread):
    """A thread with the context variables of its creator, as in free-threaded Python."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.context = contextvars.copy_context()

    def run(self) -> None:
        self.context.run(super().run)


class Threads(TestCase):
    def test_a_thread_that_a_call_starts_is_not_cancelled_with_the_call(self) -> None:
        found: List[Any] = []
        with mock.patch("threading.Thread", Inheriting), cancelled_by(Event(Clock())):
            thread = _exit.start(lambda: found.append(CANCEL.get()), "lubdub-test")
        thread.join(PATIENCE)
        self.assertEqual(found, [None])

    def test_user_code_within_user_code(self) -> None:
        outside = vars(_exit)["_state"].outside
        with _exit.outside():
            with _exit.outside():
                pass
            self.assertIn(threading.current_thread(), outside)
        self.assertNotIn(threading.current_thread(), outside)


class Exits(TestCase):
    def exits(self, how: str) -> None:
        over = threading.Event()
        self.addCleanup(over.set)
        claims: List[Any] = []

        def answer(request: ReceivedRequest) -> Answer:
            if request.path == "/v1/workers":
                return (
                    201,
                    {"workerId": "w", "workerToken": "z", "heartbeatIntervalMs": 1000, "heartbeatTimeoutMs": 100000},
                    {},
                )
            if request.path.endswith("/claim") and not claims:
                claims.append(request)
                return (
                    200,
                    {"tasks": [{"taskId": n, "attempt": 1, "taskToken": "y", "type": n} for n in ("waits", "awaits")]},
                    {},
                )
            if request.path.endswith("/claim") or "heartbeat" in request.path:
                over.wait(60)  # blocks the caller
            return 200, {"acknowledged": True}, {}

        web = self.web(answer)
        env = {**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(HERE), "src")}
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", PROGRAM, web.url, how],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=90,
        )
        over.set()
        self.assertEqual((done.returncode, done.stdout), (0, "begun: True\nleft: []\n"), done.stderr)
        for word in ("Fatal", "Exception", "Traceback"):
            self.assertNotIn(word, done.stderr)

    def test_threads_end_before_the_interpreter(self) -> None:
        self.exits("threads")

    def test_threads_with_a_child_end_too(self) -> None:
        self.exits("isolated")
