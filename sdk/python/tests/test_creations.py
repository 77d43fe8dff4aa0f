"""Creating tasks: one, or very many."""

import dataclasses
import datetime
import json
from typing import Any, Dict, Iterator, List, Set

import lubdub
from lubdub import errors
from lubdub.testing import Server

from .helpers import TestCase
from .workers import WorkerCase


@dataclasses.dataclass
class Address:
    mailbox: str


@dataclasses.dataclass
class Letter:
    to: Address
    copies: int = 1


class Creations(TestCase):
    def test_enqueue_sends_dataclasses_native_times_and_a_key(self) -> None:
        web = self.web(lambda _: (201, {"taskId": "t1", "queue": "mail", "state": "QUEUED"}, {}))
        with lubdub.Client(web.url) as client:
            at = datetime.datetime(2030, 1, 1, 12, tzinfo=datetime.timezone.utc)
            task = client.enqueue(
                "mail", "send_email", Letter(Address("a@b")), run_at=at, more={"labels": {"team": "billing"}}
            )
            for _ in range(2):
                client.enqueue("mail", "send_email", delay=datetime.timedelta(hours=1), idempotency_key="k")
            client.enqueue("mail", "send_email", delay=0.2504, not_before=at)
            self.assertRaises(lubdub.ConfigurationError, client.enqueue, "", "send_email")
            self.assertRaises(lubdub.ConfigurationError, client.enqueue, "mail", "send_email", object())
            no_times: List[Any] = ["60", 1e300, float("nan"), None, datetime.timedelta(days=367)]
            for delay in no_times:
                with self.assertRaises(lubdub.ConfigurationError):
                    client.enqueue("mail", "send_email", delay=delay)
        self.assertEqual(task["taskId"], "t1")
        first, second, again, third = web.requests
        self.assertEqual(
            first.json(),
            {
                "queue": "mail",
                "type": "send_email",
                "payload": {"to": {"mailbox": "a@b"}, "copies": 1},
                "runAt": "2030-01-01T12:00:00.000Z",
                "labels": {"team": "billing"},
            },
        )
        self.assertTrue(first.headers["idempotency-key"])
        self.assertEqual(second.headers["idempotency-key"], "k")
        self.assertEqual(second.json(), {"queue": "mail", "type": "send_email", "delayMs": 3_600_000})
        self.assertEqual(again.body, second.body)  # a repeat is the same request
        self.assertEqual((third.json()["delayMs"], third.json()["notBefore"]), (250, "2030-01-01T12:00:00.000Z"))

    def test_each_of_many_tasks_has_a_result_in_order(self) -> None:
        sizes: List[int] = []
        times: Dict[str, int] = {}

        keys: Set[str] = set()

        def result(kind: str, key: str) -> Dict[str, Any]:
            times[kind] = times.get(kind, 0) + 1
            if kind == "1500":
                keys.add(key)
            if kind == "3":
                return {"status": 409, "error": "task_exists", "message": "it exists"}
            if kind == "1500" and times[kind] == 1:
                return {"status": 503, "error": "store_unavailable", "message": "again"}
            return {"status": 201, "taskId": kind, "queue": "q", "state": "QUEUED"}

        def answer(request: Any) -> Any:
            tasks = request.json()["tasks"]
            sizes.append(len(tasks))
            return 200, {"results": [result(task["type"], task["idempotencyKey"]) for task in tasks]}

        def numbered(n: int, payload: Any = None) -> Iterator[lubdub.NewTask]:
            for i in range(n):
                yield lubdub.NewTask("q", str(i), object() if i == 7 and payload is None else payload)

        with Server() as server:
            server.intercept = answer
            client = server.client()
            found = server.hand.run(lambda: list(client.enqueue_many(numbered(2500))))
            self.assertEqual(sizes, [999, 1000, 1, 500])
            self.assertEqual(len(found), 2500)
            self.assertEqual(len(keys), 1)  # a task that is sent again keeps its key
            for i, (task, error) in enumerate(found):
                if i == 3:
                    self.assertIsInstance(error, errors.TaskExists)
                elif i == 7:
                    self.assertIsInstance(error, lubdub.ConfigurationError)
                else:
                    assert task is not None, error
                    self.assertEqual(task["taskId"], str(i))
            times.clear()
            times["1500"] = 1
            del sizes[:]
            list(client.enqueue_many(numbered(50, "x" * (200 << 10))))
            self.assertEqual(sizes, [10, 10, 10, 10, 10])
            del sizes[:]
            next(iter(client.enqueue_many(numbered(5000, 0))))
            self.assertEqual(len(sizes), 1)
            server.intercept = lambda _: (403, {"error": "forbidden"})
            refused = list(client.enqueue_many(numbered(1200, 0)))
            self.assertEqual({type(error) for _, error in refused}, {errors.Forbidden})
            self.assertEqual(len(refused), 1200)
            seen = 0
            for _ in client.enqueue_many(numbered(5000, 0)):
                client.close()
                seen += 1
            self.assertEqual(seen, 1000)

    def test_a_payload_may_change_once_the_task_is_given(self) -> None:
        web = self.web(lambda r: (200, {"results": [{"status": 201, "taskId": "t"} for _ in r.json()["tasks"]]}, {}))
        row: Dict[str, int] = {}

        def rows() -> Iterator[lubdub.NewTask]:
            for n in range(3):
                row["n"] = n
                yield lubdub.NewTask("q", "t", row)

        with lubdub.Client(web.url) as client:
            list(client.enqueue_many(rows()))
        self.assertEqual([task["payload"] for task in web.requests[0].json()["tasks"]], [{"n": 0}, {"n": 1}, {"n": 2}])

    def test_dataclasses_are_encoded_wherever_json_is(self) -> None:
        web = self.web(lambda _: (200, {}, {}))
        with lubdub.Client(web.url) as client:
            client.cancel_task("t", {"reason": Letter(Address("a@b"))})  # type: ignore[typeddict-item]
        self.assertEqual(web.requests[0].json(), json.loads('{"reason":{"to":{"mailbox":"a@b"},"copies":1}}'))


class Traces(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sent: List[Any] = []  # the traceparent of each task, or that of the header
        self.given: Any = []  # what the callable returns
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.server.intercept = self.answer
        self.client = self.server.client(traceparent=self.current, tries=2)

    def current(self) -> Any:
        return self.given.pop(0)

    def answer(self, request: Any) -> Any:
        tasks: List[Any] = request.json().get("tasks", [])
        for task in tasks or [request.json()]:
            self.sent.append(task.get("traceparent") or request.headers.get("Traceparent"))
        first = len(self.sent) == len(tasks)
        results = [{"status": 503 if first and task["type"] == "again" else 201, "taskId": "t"} for task in tasks]
        return (200, {"results": results}) if tasks else (201, {"taskId": "t"})

    def trace(self, number: int, version: str = "00") -> str:
        return f"{version}-{number:032x}-00f067aa0ba902b7-01"

    def test_every_creation_without_one_gets_the_current_one(self) -> None:
        client, mine = self.client, self.trace(9)
        self.given = [self.trace(number) for number in range(1, 6)]
        client.create_task()
        client.create_task({"type": "t"})
        client.dispatch({"type": "t"})
        client.enqueue("q", "t")
        client.create_tasks({"tasks": [{"type": "t"}, {"type": "t", "traceparent": mine}]})
        self.assertEqual(self.sent, [self.trace(number) for number in range(1, 6)] + [mine])  # once for each request
        del self.sent[:]
        self.given = [self.trace(10)]
        client.create_task({"traceparent": mine})
        client.create_task(traceparent=mine)
        client.enqueue("q", "t", traceparent=mine)
        client.enqueue("q", "t", more={"traceparent": mine})
        client.create_tasks({"tasks": [{"type": "t"}]}, traceparent=mine)
        self.assertEqual(self.sent, [mine] * 5)
        self.assertEqual(self.given, [self.trace(10)])  # it was not called

    def test_a_batch_keeps_the_one_that_it_began_with(self) -> None:
        self.given = [self.trace(1)]
        tasks = [lubdub.NewTask("q", type) for type in ("t", "again")]
        self.server.hand.run(lambda: list(self.client.enqueue_many(tasks)))
        self.assertEqual(self.sent, [self.trace(1)] * 3)

    def test_what_a_header_cannot_have_is_not_sent(self) -> None:
        self.given = [None, "", "x", self.trace(1) + "\n", "0" * 513, self.trace(1)]
        for _ in range(6):
            self.client.create_task()
        self.assertEqual(self.sent, [None] * 5 + [self.trace(1)])

    def test_an_error_is_logged_once_and_ignored(self) -> None:
        with self.assertLogs("lubdub", "ERROR") as logs:
            for _ in range(2):
                self.client.create_task()  # with nothing to return, it fails
            self.given = [7, self.trace(1)]
            self.client.create_task()
            self.client.create_task()
        self.assertEqual(self.sent, [None, None, None, self.trace(1)])
        self.assertEqual(len(logs.output), 1)
        self.assertIn("IndexError", logs.output[0])


class Scheduled(WorkerCase):
    def test_the_test_server_hands_out_a_task_when_its_time_has_come(self) -> None:
        at = datetime.datetime.fromtimestamp(self.server.clock.wall() + 20, datetime.timezone.utc)
        client, began = self.server.client(), self.server.clock.now()
        self.addCleanup(self.quiet)
        self.start(lambda task: round(self.server.clock.now() - began, 3))
        times: List[Any] = [{"delay": 30}, {"run_at": at}, {"not_before": at}]
        ids = [self.server.hand.run(lambda one=one: client.enqueue("default", "t", **one))["taskId"] for one in times]
        cancelled = self.server.enqueue("t", delayMs=5000)
        self.server.cancel(cancelled, "enough")
        self.assertEqual([self.server.task(i).state for i in ids], ["SCHEDULED"] * 3)
        self.assertEqual([self.done(i).output for i in ids], [30, 20, 20])
        self.assertEqual((self.server.task(cancelled).state, self.server.task(cancelled).attempt), ("CANCELLED", 0))
