"""Results over real connections, with the system's clock."""

import http.client
import os
import socket
import threading
import unittest
from typing import Dict, List, Tuple

import lubdub
from lubdub import _http

from .helpers import PATIENCE, Answer, ReceivedRequest, TestCase
from .test_fork import in_fork


class Connections(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.waits = threading.Event()  # a request for a slow task has arrived
        self.over = threading.Event()
        self.addCleanup(self.over.set)
        self.sent = self.web(self.answer)

    def answer(self, request: ReceivedRequest) -> Answer:
        ids: List[str] = request.json()["taskIds"]
        found = [{"taskId": task_id, "state": "SUCCEEDED", "output": task_id} for task_id in ids if task_id != "slow"]
        if not found:
            self.waits.set()
            self.over.wait(PATIENCE)
            return 0, {}, {}
        return 200, {"tasks": found, "notFound": []}, {}

    def background(self, client: lubdub.Client) -> "Tuple[threading.Thread, Dict[str, BaseException]]":
        """A thread that waits for the slow task, and its error."""
        failed: Dict[str, BaseException] = {}

        def run() -> None:
            try:
                client.result("slow")
            except lubdub.LubdubError as error:
                failed["error"] = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.assertTrue(self.waits.wait(PATIENCE))
        return thread, failed

    def test_an_addition_interrupts_the_request_and_close_ends_it(self) -> None:
        with lubdub.Client(self.sent.url) as client:
            thread, failed = self.background(client)
            self.assertEqual(client.result("fast", PATIENCE), "fast")
            self.assertEqual(
                [request.json()["taskIds"] for request in self.sent.requests[:2]], [["slow"], ["slow", "fast"]]
            )
        thread.join(PATIENCE)
        self.assertIsInstance(failed["error"], lubdub.ClosedError)

    @unittest.skipUnless(hasattr(os, "fork"), "there are no forks on this system")
    def test_a_forked_process_waits_for_its_own(self) -> None:
        with lubdub.Client(self.sent.url) as client:
            thread, _ = self.background(client)
            self.assertEqual(in_fork(lambda: client.result("fast", PATIENCE)), "'fast'")
            self.assertEqual([r.json()["taskIds"] for r in self.sent.requests], [["slow"], ["fast"]])
            self.assertTrue(thread.is_alive())

    def test_a_cancel_keeps_the_tls_state(self) -> None:
        """SSLSocket.shutdown drops it: an answer that has arrived would be read as ciphertext."""

        class Tls(socket.socket):
            def shutdown(self, how: int) -> None:
                raise AssertionError("the TLS state is lost")

        ours, other = socket.socketpair()
        connection = http.client.HTTPConnection("127.0.0.1")
        with Tls(fileno=ours.detach()) as connection.sock, other:
            other.sendall(b"answer")
            vars(_http)["_shut"](connection)
            self.assertEqual([connection.sock.recv(9), connection.sock.recv(9)], [b"answer", b""])
