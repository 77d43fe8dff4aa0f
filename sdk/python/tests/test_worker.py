"""A worker from its registration to its end: handlers, names, heartbeats."""

import asyncio
import json
import os
import threading
from typing import Any, List

import lubdub
from lubdub._beats import Accepted, BeatEntry, Listener
from lubdub._call import Caller
from lubdub._clock import Clock
from lubdub._http import Response, Transport
from lubdub._endpoints import Endpoints, Token
from lubdub._entries import Report
from lubdub._workerbeats import Session, WorkerBeats
from lubdub.task import Task

from .helpers import TestCase
from .workers import WorkerCase


class Days(WorkerCase):
    def test_a_workers_life_cycle(self) -> None:
        os.environ.update(POD_NAME="pod-1", NODE_NAME="node 7", ZONE="z")
        ids = [self.server.enqueue("t", number) for number in range(3)]
        with self.assertLogs("lubdub.worker", "DEBUG") as logs:
            worker = self.start(labels={"team": "x"}, version="1.2", runtimes=["ffmpeg"])
            self.assertEqual([self.done(i).output for i in ids], [0, 1, 2])
            self.server.until("they are counted", lambda: self.server.worker().completed == 3)
            self.assertTrue(worker.registered)
            self.assertIsNone(self.stop(worker))
        body = self.server.seen("/v1/workers")[0].json()
        self.assertEqual(
            (body["queue"], body["types"], body["name"], body["machineId"]), ("default", ["t"], "pod-1", "node-7")
        )
        self.assertEqual(body["labels"], {"pod": "pod-1", "node": "node 7", "zone": "z", "team": "x"})
        self.assertEqual((body["runtimes"][0], body["runtimes"][-1]), ("python", "ffmpeg"))
        self.assertEqual((body["pid"], body["version"]), (os.getpid(), "1.2"))
        paths = [r.path.rsplit("/", 1)[1] for r in self.server.requests]
        self.assertEqual((paths[0], paths[-2:]), ("workers", ["drain", "deregister"]))
        text = "\n".join(logs.output)
        for words in (
            "Worker registered with ID",
            "Heartbeat sent successfully",
            "Draining: the worker is stopping",
            "Deregistering worker ID",
        ):
            self.assertIn(words, text)
        self.assertFalse(worker.registered)

    def test_a_heartbeat_logs_how_many_leases_it_extended(self) -> None:
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        task = self.server.enqueue("t")
        with self.assertLogs("lubdub.worker", "DEBUG") as logs:
            worker = self.start(lambda t: proceed.wait(30))
            self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
            self.server.advance(30)
            self.server.until(
                "it is logged", lambda: any("1 active, leases extended: 1" in line for line in logs.output)
            )
            proceed.set()
            self.assertIsNone(self.stop(worker))

    def test_never_more_than_is_free(self) -> None:
        ids = [self.server.enqueue("t", number) for number in range(20)]
        most: List[int] = []

        def handler(task: Task) -> None:
            most.append(worker.active_count)
            task.wait(5 + task.payload)

        worker = self.start(handler, concurrency=3)
        for task in ids:
            self.done(task)
        self.assertEqual(max(most), 3)
        self.assertTrue(all(r.json()["max"] <= 3 for r in self.server.seen("*/claim")))

    def test_coroutines(self) -> None:
        worker = lubdub.Worker("default", client=self.server.client())
        loops: List[Any] = []

        @worker.handler("t")
        async def handle(task: Task) -> Any:  # pyright: ignore[reportUnusedFunction]
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0.001)
            return task.payload * 2

        @worker.handler("forever")
        async def forever(task: Task) -> Any:  # pyright: ignore[reportUnusedFunction]
            self.server.cancel(task.task_id, "enough")
            await asyncio.sleep(3600)

        ids = [self.server.enqueue("t", n) for n in (1, 2)]
        endless = self.server.enqueue("forever")
        self.run_worker(worker)
        self.assertEqual([self.done(i).output for i in ids], [2, 4])
        self.assertEqual(len(set(map(id, loops))), 1)
        self.assertEqual(self.done(endless).state, "CANCELLED")

    def test_middleware(self) -> None:
        calls: List[str] = []

        def wrap(name: str) -> Any:
            return lambda handler: lambda task: (calls.append(name), handler(task))[1]  # pyright: ignore

        worker = lubdub.Worker("default", client=self.server.client())
        worker.use(wrap("outer"), wrap("inner"))
        worker.handle("t", lambda task: calls.append("handler"))
        self.run_worker(worker)
        self.done(self.server.enqueue("t"))
        self.assertEqual(calls, ["outer", "inner", "handler"])

    def test_a_failure_does_not_affect_other_tasks(self) -> None:
        def handler(task: Task) -> Any:
            if task.payload == "exit":
                raise SystemExit(3)
            if task.payload == "big":
                return "x" * (256 << 10)
            if task.payload == "type":
                raise lubdub.Failure("no column", "CONFIGURATION", retryable=False)
            return 1

        found = {
            p: self.done(t)
            for p, t in [
                (p, self.server.enqueue("t", p, retry={"maxAttempts": 1})) for p in ("exit", "big", "type", "good")
            ]
            if self.workers or self.start(handler)
        }
        self.assertEqual(found["good"].state, "SUCCEEDED")
        self.assertEqual(found["exit"].error["category"], "USER_CODE")
        self.assertEqual((found["big"].error["category"], found["big"].error["retryable"]), ("USER_CODE", False))
        self.assertEqual((found["type"].error["category"], found["type"].error["retryable"]), ("CONFIGURATION", False))
        self.server.until(
            "they are counted", lambda: (self.server.worker().completed, self.server.worker().failed) == (1, 3)
        )


class Names(WorkerCase):
    def test_two_workers_of_one_process_do_not_supersede_each_other(self) -> None:
        def registered(count: int) -> List[str]:
            self.server.until("they are registered", lambda: len(self.server.store.workers) == count)
            return [str(w.fields["name"]) for w in self.server.store.workers.values()]

        long = "n" * 128
        first = self.start(name="mailer")
        registered(1)
        found: List[str] = []
        others: List[Any] = [
            {"name": "mailer"},
            {"name": "mailer"},
            {"name": "mailer", "machine_id": "other"},
            {"name": long},
            {"name": long},
            {},
            {},
        ]
        for count, options in enumerate(others, 2):
            self.start(**options)
            found = registered(count)
        self.assertEqual(found[:6], ["mailer", "mailer-2", "mailer-3", "mailer", long, long[:126] + "-2"])
        self.assertEqual(found[7], found[6] + "-2")
        self.stop(first)
        self.start(name="mailer")
        self.assertEqual(registered(9)[-1], "mailer")

    def test_tasks_without_a_type(self) -> None:
        worker = lubdub.Worker("default", client=self.server.client(), default=lambda task: ["default", task.payload])
        worker.handle("t", lambda task: ["t", task.payload])
        self.run_worker(worker)
        ids = [self.server.enqueue(type, 1) for type in (None, "t")]
        self.assertEqual([self.done(i).output for i in ids], [["default", 1], ["t", 1]])
        self.stop(worker)
        self.start()
        left, typed = self.server.enqueue(None), self.server.enqueue("t")
        self.done(typed)
        self.assertEqual(self.server.task(left).state, "QUEUED")  # without a default handler it is not claimed


class Order(TestCase):
    def test_attempts_in_a_pending_heartbeat_are_not_released(self) -> None:
        on_the_wire, proceed = threading.Event(), threading.Event()
        order: List[str] = []

        class Slow(Transport):
            def send(self, *arguments: Any, **named: Any) -> Response:
                on_the_wire.set()
                proceed.wait(20)
                order.append("answered")
                return Response(200, {}, b"{}")

        caller = Caller(Endpoints(["http://127.0.0.1:1"], False), Token(""), Slow(), Clock(), "test", 10, 1)
        beats = WorkerBeats(caller, Listener())
        self.addCleanup(beats.close)
        beats.listed([("a", 1)])
        beats.enter(Session("w", "x", 10, 30, caller.clock.now() - 100))
        self.assertTrue(on_the_wire.wait(20))
        beats.hold(BeatEntry("a", 1))  # it has started meanwhile
        releasing = threading.Thread(target=lambda: (beats.release("a/1"), order.append("released")))
        releasing.start()
        releasing.join(0.05)
        proceed.set()
        releasing.join()
        self.assertEqual(order[:2], ["answered", "released"])

    def test_a_child_without_messages_from_its_parent_sends_no_inventory(self) -> None:
        sent: List[Any] = []

        class Noting(Transport):
            def send(self, *arguments: Any, **named: Any) -> Response:
                sent.append((arguments[1].rsplit("/", 2)[1:], json.loads(arguments[3])))
                return Response(200, {}, json.dumps({"results": [{"taskId": "b", "status": 200}]}).encode())

        class Silent(WorkerBeats):
            def complete(self, session: Session) -> bool:
                return False

        class Noted(Listener):
            def accepted(self, beats: List[Accepted]) -> None:
                sent.append([(beat.key, beat.version) for beat in beats])

        caller = Caller(Endpoints(["http://127.0.0.1:1"], False), Token(""), Noting(), Clock(), "test", 10, 1)
        beats = Silent(caller, Noted())
        session = beats.session = Session("w", "x", 10, 30, caller.clock.now())
        entries = [BeatEntry("a", 1), BeatEntry("b", 1, "x", interval=5, timeout=15)]
        for entry in entries:
            entry.report = Report(1, 5)
            beats.entries[entry.key] = entry
        beats.beat([BeatEntry("", 0), *entries])
        self.assertNotIn("tasks", sent[0][1])
        self.assertEqual(sent[1], [("a/1", 0)])
        item = {"taskId": "b", "attempt": 1, "progressPct": 5, "taskToken": "x"}
        self.assertEqual(sent[2], (["v1", "heartbeats"], {"heartbeats": [item]}))
        self.assertEqual(sent[3], [("b/1", 1)])
        self.assertIs(beats.session, session)
