"""Whatever the server answers, calls end with a typed error and heartbeats continue. All randomness has a seed."""

import functools
import inspect
import json
import random
import socket
import socketserver
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import lubdub
from lubdub import errors
from lubdub._answers import envelopes, interval_of, seconds, timeout_of
from lubdub._clock import Event
from lubdub._http import Response
from lubdub.testing import Server

from .helpers import TestCase

NAMES = [
    "tasks",
    "taskId",
    "attempt",
    "taskToken",
    "results",
    "status",
    "nextHeartbeatMs",
    "retryAfterMs",
    "shouldCancel",
    "cancelReason",
    "error",
    "message",
    "workerId",
    "workerToken",
    "heartbeatIntervalMs",
    "heartbeatTimeoutMs",
    "cancelTasks",
    "lostTasks",
    "drainDeadline",
    "serverTime",
    "tokenExpiresAt",
    "finalState",
    "reason",
    "state",
]
TEXTS = [
    "",
    "\0",
    "a\r\nb: c",
    "NaN",
    "task_0001",
    "worker_offline",
    "x" * 5000,
    "2026-01-01T00:00:00.000Z",
    "0000-00-00T99:99:99Z",
]
SOME: List[Dict[str, Any]] = [{}, {"heartbeatIntervalMs": 5000, "heartbeatTimeoutMs": 20_000}]
NUMBERS = [0, -1, 1, 1e300, -1e300, 1 << 53, 0.5, 1e-300, 503, 200, 410, 10**400, float("inf"), float("nan")]


def value(by: random.Random, depth: int = 0) -> Any:
    """Any JSON value, and a few values that are not JSON."""
    kind = by.randrange(8 if depth > 3 else 11)
    if kind < 6:
        return by.choice([None, True, False, by.choice(NUMBERS), by.randrange(100_000), by.choice(TEXTS)])
    if kind < 9:
        return [value(by, depth + 1) for _ in range(by.randrange(4))] if depth <= 3 else []
    return {by.choice(NAMES): value(by, depth + 1) for _ in range(by.randrange(6))}


def bad_body(by: random.Random) -> bytes:
    """A body that does not follow the API."""
    kind = by.randrange(9)
    if kind == 0:
        return bytes(by.randrange(256) for _ in range(by.randrange(100)))
    if kind == 1:
        return b"[" * 200_000
    if kind == 2:
        return b'{"tasks":' * 5000 + b"1" + b"}" * 5000
    if kind == 3:
        return b'{"tasks":' + b"9" * 10_000 + b"}"
    if kind == 4:
        return json.dumps(value(by)).encode()[:-1]
    if kind == 5:
        return b'{"workerId": "\\ud800", "workerToken": "a\\r\\nb: c"}'
    return json.dumps({by.choice(NAMES): value(by) for _ in range(by.randrange(8))}).encode()


class RawServer:
    """Answers every connection with the same bytes."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    if self.request.recv(65536):
                        answer(self.request)
                except OSError:
                    pass  # the client has disconnected

        class Listener(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 100

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=lambda: self.server.serve_forever(0.01), daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Stops it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Strange(Server):
    """A server that answers with random bytes while it is bad."""

    def __init__(self, by: random.Random, paths: Tuple[str, ...]) -> None:
        super().__init__()
        self.by, self.paths, self.bad, self.request_count = by, paths, False, 0

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Optional[bytes],
        limit: float,
        cancel: Optional[Event] = None,
    ) -> Response:
        self.request_count += 1
        if self.bad and url.endswith(self.paths) and self.by.random() < 0.8:
            return Response(
                self.by.choice([200, 200, 200, 400, 404, 409, 500, 503]),
                {"retry-after": self.by.choice(["1", "x", "9" * 30])},
                bad_body(self.by),
            )
        return super().send(method, url, headers, body, limit, cancel)


class Calls(TestCase):
    def raw(self, answer: Callable[[socket.socket], None], timeout: float = 5) -> lubdub.Client:
        server = RawServer(answer)
        self.addCleanup(server.close)
        client = lubdub.Client(server.url, token="x", tries=1, timeout=timeout, proxy="")
        self.addCleanup(client.close)
        return client

    def calls(self, client: lubdub.Client) -> List[Tuple[str, Callable[[], Any]]]:
        """Each call of the client, with values for its required arguments."""
        found: List[Tuple[str, Callable[[], Any]]] = []
        for name, call in inspect.getmembers(client, inspect.ismethod):
            if name.startswith(("_", "iter_")) or name in (
                "close",
                "track",
                "run",
                "attempt_of",
                "endpoints_of",
                "events",
                "ask",
                "post",
                "after_fork",
                "settings",
                "isolation",
                "create_tasks",
                "enqueue",
                "enqueue_many",
                "dispatch",
                "result",  # retries without an end
            ):
                continue
            needed = [
                p
                for p in inspect.signature(call).parameters.values()
                if p.default is p.empty and p.kind != p.VAR_KEYWORD
            ]
            given: Dict[str, Any] = {p.name: ({} if "body" in p.name else "x") for p in needed}
            found.append((name, functools.partial(call, **given)))
        many = [lubdub.NewTask("q", "t")] * 2
        found.append(("enqueue_many", lambda: {"results": list(client.enqueue_many(many))}))
        self.assertGreater(len(found), 30)
        return found

    def test_every_call_ends_with_a_typed_error_or_an_object(self) -> None:
        by = random.Random(1)
        head = b"HTTP/1.1 200 OK\r\n"
        shapes: List[Callable[[], bytes]] = [
            lambda: bytes(by.randrange(256) for _ in range(by.randrange(300))),
            lambda: head + b'Content-Length: 1000\r\n\r\n{"cut":',
            lambda: b"HTTP/1.1 "
            + by.choice([b"200", b"503", b"99", b"9999", b"-1", b"2e2"])
            + b" \r\n\r\n"
            + bad_body(by),
            lambda: head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
            lambda: head + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n{}\r\n0\r\n\r\n",
            lambda: head + b"Content-Length: -5\r\n\r\n{}",
            lambda: head + b"X: " + b"y" * 100_000 + b"\r\n\r\n{}",
            lambda: head + b"X: y\r\n" * 200 + b"\r\n{}",
            lambda: b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            lambda: b"HTTP/1.1 503 No\r\nRetry-After: " + b"9" * 40 + b"\r\nContent-Length: 0\r\n\r\n",
            lambda: head + b"Content-Type: image/png\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
            lambda: b"",
        ]
        for number, shape in enumerate(shapes):
            client = self.raw(lambda to, shape=shape: to.sendall(shape()))
            for name, call in self.calls(client):
                with self.subTest(shape=number, call=name):
                    try:
                        self.assertIsInstance(call(), dict)
                    except errors.LubdubError:
                        pass

    def test_an_endless_response_is_aborted_by_size_or_time(self) -> None:
        def endless(to: socket.socket) -> None:
            to.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                to.sendall(b" " * (1 << 20))

        def slowly(first: bytes, then: bytes) -> Callable[[socket.socket], None]:
            def answer(to: socket.socket) -> None:
                to.sendall(first)
                while not over.wait(0.02):
                    to.sendall(then)

            return answer

        over = threading.Event()
        self.addCleanup(over.set)
        with self.assertRaises(errors.AnswerError):
            self.raw(endless, timeout=60).get_task("x")
        for first, then in (
            (b"HTTP/1.1 200 OK\r\n", b"X"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
        ):
            client = self.raw(slowly(first, then), timeout=0.3)
            with self.assertRaises(errors.NoAnswer):
                client.get_task("x")

    def test_an_endless_event_is_aborted(self) -> None:
        def endless(to: socket.socket) -> None:
            to.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                to.sendall(b"data: x\n" * 10_000)

        with self.assertRaises(errors.AnswerError):
            next(self.raw(endless, timeout=60).events())


class Beats(TestCase):
    def test_a_worker_continues_heartbeats_and_recovers(self) -> None:
        for seed in range(25):
            by = random.Random(seed)
            server = Strange(by, ("/heartbeat", "/v1/heartbeats", "/v1/workers"))
            with self.subTest(seed=seed), server, self.assertLogs("lubdub"):
                worker = lubdub.Worker("default", client=server.client(), task_timeout=0)
                worker.handle("t", lambda task: task.wait(300))
                for fields in SOME:
                    server.enqueue("t", **fields)
                ended: List[Any] = []
                server.hand.spawn(
                    lambda worker=worker, ended=ended: ended.append(worker.run(signals=False)), "test-worker"
                )
                server.until(
                    "they run", lambda server=server: all(t.state == "RUNNING" for t in server.store.tasks.values())
                )
                server.bad, server.request_count = True, 0
                server.advance(20)
                self.assertLess(server.request_count, 3000)
                server.bad, before = False, len(server.requests)
                server.advance(40)
                self.assertTrue(
                    [r for r in server.requests[before:] if r.path.endswith(("/heartbeat", "/v1/workers"))],
                    "it beats no more",
                )
                worker.kill()
                server.until("the worker ends", lambda ended=ended: ended or not worker.registered)

    def test_tracked_attempts_get_heartbeats(self) -> None:
        for seed in range(25):
            by = random.Random(seed)
            server = Strange(by, ("/v1/heartbeats",))
            with self.subTest(seed=seed), server:
                client = server.client()
                attempts = [
                    server.hand.run(
                        client.track(server.dispatch(heartbeatIntervalMs=2000, heartbeatTimeoutMs=60_000)).start
                    )
                    for _ in range(3)
                ]
                server.bad, server.request_count = True, 0
                server.advance(20)
                self.assertLess(server.request_count, 3000)
                server.bad, before = False, len(server.requests)
                server.advance(10)
                self.assertTrue(server.seen("/v1/heartbeats")[-1] in server.requests[before:], "it beats no more")
                for attempt in attempts:
                    attempt.abandon()

    def test_claims_and_registrations_end_in_a_typed_error_or_continue(self) -> None:
        for seed in range(40):
            server = Strange(random.Random(seed), ("/claim",) if seed % 2 else ("/v1/workers",))
            with self.subTest(seed=seed), server:
                server.bad = True
                worker = lubdub.Worker("default", client=server.client())
                worker.handle("t", lambda task: None)
                server.enqueue("t")
                ended: List[Optional[BaseException]] = []

                def run(worker: lubdub.Worker = worker, ended: List[Optional[BaseException]] = ended) -> None:
                    try:
                        worker.run(signals=False)
                        ended.append(None)
                    except BaseException as error:
                        ended.append(error)

                server.hand.spawn(run, "test-worker")
                server.advance(30)
                worker.close()
                server.until("the worker ends", lambda ended=ended: ended, 180)
                self.assertIsInstance(ended[0], (type(None), errors.LubdubError))

    def test_results_end_in_a_typed_error_or_continue(self) -> None:
        for seed in range(60):
            server = Strange(random.Random(seed), ("/v1/tasks:wait",))
            with self.subTest(seed=seed), server:
                server.bad, task_id, client = True, server.enqueue("t"), server.client()
                ended: List[BaseException] = []

                def run(client: lubdub.Client = client, task_id: str = task_id, ended: List[Any] = ended) -> None:
                    try:
                        client.result(task_id)
                    except BaseException as error:
                        ended.append(error)

                server.hand.spawn(run, "test-result")
                server.advance(20)
                self.assertLess(server.request_count, 3000)
                server.bad = False
                server.cancel(task_id)
                server.until("the wait ends", lambda ended=ended: ended)
                self.assertIsInstance(ended[0], errors.LubdubError)


class Answers(TestCase):
    def test_invalid_values_are_ignored(self) -> None:
        strange: List[Any] = [None, True, "5", float("nan"), float("inf"), -1, 0, 10**400, [], {}]
        for one in strange:
            self.assertEqual((seconds(one), interval_of(one, 30, 7), timeout_of(one, 9)), (0, 7, 9), one)
        self.assertEqual([interval_of(ms, 30, 7) for ms in (5000, 86_400_000, 0.001)], [5, 15, 0.01])
        claims: List[Any] = [
            5,
            "x",
            {},
            [None],
            [[]],
            [{"taskId": "a", "attempt": 1}],
            [{"taskId": "a", "attempt": "1", "taskToken": "x"}],
            [{"taskId": "a", "attempt": 1, "taskToken": "a\r\nb: c"}],
        ]
        for tasks in claims:
            with self.assertRaises(errors.AnswerError):
                envelopes({"tasks": tasks})
        self.assertEqual(envelopes({"tasks": None}), [])
