"""A forked process opens its own connections, and gets an error when it uses the parent's attempts."""

import multiprocessing
import os
import unittest
from typing import Any, Callable

import lubdub

from .helpers import Answer, ReceivedRequest, TestCase


def in_fork(work: Callable[[], Any]) -> str:
    """The result or error of work in a forked process, as a text."""
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(False)

    def run() -> None:
        try:
            writer.send(repr(work()))
        except BaseException as error:
            writer.send(type(error).__name__ + ": " + str(error))

    process = context.Process(target=run)
    process.start()
    try:
        if not reader.poll(30):
            process.kill()
            return "nothing within 30 s"
        return str(reader.recv())
    finally:
        process.join()


@unittest.skipUnless(hasattr(os, "fork"), "there are no forks on this system")
class Forks(TestCase):
    def test_a_fork_uses_its_own_connections(self) -> None:
        def answer(request: ReceivedRequest) -> Answer:
            return 200, {"version": "x"}, {}

        web = self.web(answer)
        with lubdub.Client(web.url, token="x") as client:
            client.version()
            idle_sockets = [c.sock.fileno() for idle in vars(client.caller.transport)["idle"].values() for c in idle]
            self.assertEqual(len(idle_sockets), 1)
            locks = [vars(client.caller.token)["_lock"], vars(client)["_lock"], vars(client.caller.transport)["lock"]]
            for lock in locks:  # as if other threads were running at that moment
                lock.acquire()
            try:
                result = in_fork(lambda: (client.version()["version"], len(vars(client.caller.transport)["idle"])))
            finally:
                for lock in locks:
                    lock.release()
            self.assertEqual(result, "('x', 1)")
            client.version()
        self.assertEqual(len(web.requests), 3)

    def test_a_handle_in_a_fork_names_the_process_that_sends_heartbeats(self) -> None:
        def answer(request: ReceivedRequest) -> Answer:
            if request.path == "/v1/heartbeats":
                results = [
                    {"taskId": i["taskId"], "status": 200, "nextHeartbeatMs": 1000}
                    for i in request.json()["heartbeats"]
                ]
                return 200, {"results": results}, {}
            return 200, {"acknowledged": True, "finalState": "SUCCEEDED"}, {}

        web = self.web(answer)
        with lubdub.Client(web.url) as client:
            attempt = client.track({"taskId": "t", "attempt": 1, "taskToken": "x"}).start()
            for work in (lambda: attempt.progress(5), lambda: attempt.checkpoint(5), attempt.done, attempt.check):
                result = in_fork(work)
                self.assertIn(f"ForkedError: task t gets its heartbeats from process {os.getpid()}", result)
            self.assertEqual(in_fork(attempt.abandon), "None")
            attempt.done()
        self.assertEqual([r.path for r in web.requests if "complete" in r.path], ["/v1/tasks/t/completed"])
