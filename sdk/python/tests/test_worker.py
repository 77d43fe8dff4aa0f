"""A worker, from its registration to its end."""

import asyncio
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from typing import Any, Callable, List, Optional

import lubdub
from lubdub._beats import Accepted, Beaten, Listener
from lubdub._call import Caller
from lubdub._clock import Clock, Event
from lubdub._http import Response, Transport
from lubdub._places import Endpoints, Token
from lubdub._workerbeats import Session, WorkerBeats
from lubdub.attempt import Attempt
from lubdub.testing import Request, Server

from .helpers import TestCase


class Working(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.ended: List[Optional[BaseException]] = []
        self.workers: List[lubdub.Worker] = []
        self.addCleanup(self.end)

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()

    def start(self, handler: Optional[Callable[[Attempt], Any]] = None, **options: Any) -> lubdub.Worker:
        worker = lubdub.Worker("default", client=self.server.client(**options.pop("client", {})), **options)
        worker.handle("t", handler or (lambda task: task.payload))
        return self.run_worker(worker)

    def run_worker(self, worker: lubdub.Worker) -> lubdub.Worker:
        def run() -> None:
            try:
                worker.run(signals=False)
                self.ended.append(None)
            except BaseException as error:
                self.ended.append(error)

        self.workers.append(worker)
        self.server.hand.spawn(run, "test-worker")
        return worker

    def done(self, task_id: str) -> Any:
        task = self.server.task(task_id)
        self.server.until("the task ends", lambda: task.over)
        return task

    def stop(self, worker: lubdub.Worker) -> Optional[BaseException]:
        worker.close()
        self.server.until("the worker ends", lambda: self.ended)
        return self.ended[0]

    def beats(self) -> List[Request]:
        return self.server.seen("/v1/workers/*/heartbeat".replace("*", self.server.worker().id))


class Days(Working):
    def test_a_day(self) -> None:
        os.environ.update(POD_NAME="pod-1", NODE_NAME="node 7", ZONE="z")
        ids = [self.server.enqueue("t", number) for number in range(3)]
        with self.assertLogs("lubdub.worker", "DEBUG") as logs:
            worker = self.start(labels={"team": "x"}, version="1.2", runtimes=["ffmpeg"])
            self.assertEqual([self.done(i).output for i in ids], [0, 1, 2])
            self.server.until("they are counted", lambda: self.server.worker().completed == 3)
            self.assertTrue(worker.registered)
            self.assertIsNone(self.stop(worker))
        said = self.server.seen("/v1/workers")[0].json()
        self.assertEqual(
            (said["queue"], said["types"], said["name"], said["machineId"]), ("default", ["t"], "pod-1", "node-7")
        )
        self.assertEqual(said["labels"], {"pod": "pod-1", "node": "node 7", "zone": "z", "team": "x"})
        self.assertEqual((said["runtimes"][0], said["runtimes"][-1]), ("python", "ffmpeg"))
        self.assertEqual((said["pid"], said["version"]), (os.getpid(), "1.2"))
        paths = [r.path.rsplit("/", 1)[1] for r in self.server.requests]
        self.assertEqual((paths[0], paths[-2:]), ("workers", ["drain", "deregister"]))
        text = "\n".join(logs.output)
        for words in (
            "Worker registered with ID",
            "Heartbeat sent successfully",
            "Draining: the worker stops",
            "Deregistering worker ID",
        ):
            self.assertIn(words, text)
        self.assertFalse(worker.registered)

    def test_a_heartbeat_logs_how_many_leases_it_extended(self) -> None:
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        task = self.server.enqueue("t")
        with self.assertLogs("lubdub.worker", "DEBUG") as logs:
            worker = self.start(lambda t: go_on.wait(30))
            self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
            self.server.advance(30)
            self.server.until(
                "it is logged", lambda: any("1 active, leases extended: 1" in line for line in logs.output)
            )
            go_on.set()
            self.assertIsNone(self.stop(worker))

    def test_never_more_than_is_free(self) -> None:
        ids = [self.server.enqueue("t", number) for number in range(20)]
        most: List[int] = []

        def handler(task: Attempt) -> None:
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
        async def handle(task: Attempt) -> Any:  # pyright: ignore[reportUnusedFunction]
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0.001)
            return task.payload * 2

        @worker.handler("forever")
        async def forever(task: Attempt) -> Any:  # pyright: ignore[reportUnusedFunction]
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

    def test_failures_and_neighbours(self) -> None:
        def handler(task: Attempt) -> Any:
            if task.payload == "exit":
                raise SystemExit(3)
            if task.payload == "big":
                return "x" * (256 << 10)
            if task.payload == "type":
                raise lubdub.Failure("no column", "CONFIGURATION", retryable=False)
            return 1

        found = {
            p: self.done(t)
            for p, t in [(p, self.server.enqueue("t", p)) for p in ("exit", "big", "type", "good")]
            if self.workers or self.start(handler)
        }
        self.assertEqual(found["good"].state, "SUCCEEDED")
        self.assertEqual(found["exit"].error["category"], "USER_CODE")
        self.assertEqual((found["big"].error["category"], found["big"].error["retryable"]), ("USER_CODE", False))
        self.assertEqual((found["type"].error["category"], found["type"].error["retryable"]), ("CONFIGURATION", False))
        self.server.until(
            "they are counted", lambda: (self.server.worker().completed, self.server.worker().failed) == (1, 3)
        )


class Names(Working):
    def test_two_workers_of_one_process_do_not_take_each_others_place(self) -> None:
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
    def test_what_a_beat_under_way_names_is_not_released_before_it_is_answered(self) -> None:
        on_the_wire, go_on = threading.Event(), threading.Event()
        order: List[str] = []

        class Slow(Transport):
            def send(self, *arguments: Any, **named: Any) -> Response:
                on_the_wire.set()
                go_on.wait(20)
                order.append("answered")
                return Response(200, {}, b"{}")

        caller = Caller(Endpoints(["http://127.0.0.1:1"], False), Token(""), Slow(), Clock(), "test", 10, 1)
        beats = WorkerBeats(caller, Listener())
        self.addCleanup(beats.close)
        beats.listed("a", 1)
        beats.enter(Session("w", "x", 10, 30, caller.clock.now() - 100))
        self.assertTrue(on_the_wire.wait(20))
        beats.hold(Beaten("a", 1))  # it has started meanwhile
        releasing = threading.Thread(target=lambda: (beats.release("a/1"), order.append("released")))
        releasing.start()
        releasing.join(0.05)
        go_on.set()
        releasing.join()
        self.assertEqual(order[:2], ["answered", "released"])

    def test_a_child_that_hears_nothing_of_its_parent_sends_no_inventory(self) -> None:
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
        entries = [Beaten("a", 1), Beaten("b", 1, "x", interval=5, timeout=15)]
        for entry in entries:
            entry.pct, entry.version = 5, 1
            beats.entries[entry.key] = entry
        beats.beat([Beaten("", 0), *entries])
        self.assertNotIn("tasks", sent[0][1])
        self.assertEqual(sent[1], [("a/1", 0)])
        item = {"taskId": "b", "attempt": 1, "progressPct": 5, "taskToken": "x"}
        self.assertEqual(sent[2], (["v1", "heartbeats"], {"heartbeats": [item]}))
        self.assertEqual(sent[3], [("b/1", 1)])
        self.assertIs(beats.session, session)


class Trouble(Working):
    def test_deltas_are_kept_until_they_were_answered(self) -> None:
        self.start()
        self.server.until("it beats", lambda: self.server.store.workers and len(self.beats()) > 0)
        self.server.lose_answers("/v1/workers/*", "/v1/workers/*")
        for _ in range(3):
            self.done(self.server.enqueue("t"))
        self.server.until("they are counted", lambda: self.server.worker().completed == 3)
        unheard = iter([(503, {"error": "overloaded"})] * 3)
        self.server.intercept = lambda r: next(unheard, None) if r.path.endswith("/heartbeat") else None
        self.done(self.server.enqueue("t"))
        self.server.until("that one too", lambda: self.server.worker().completed == 4)
        self.server.advance(100)
        self.assertEqual(self.server.worker().completed, 4)

    def test_a_claim_is_repeated_under_its_id(self) -> None:
        task = self.server.enqueue("t", 7)
        self.server.lose_answers("*/claim", "*/claim")
        self.start()
        self.assertEqual(self.done(task).output, 7)
        self.assertEqual(len({r.json()["claimId"] for r in self.server.seen("*/claim")[:3]}), 1)
        self.assertEqual(len(self.server.task(task).completions), 1)

    def test_an_empty_queue_that_answers_at_once_is_not_asked_without_a_pause(self) -> None:
        self.server.intercept = lambda r: (200, {"tasks": []}) if r.path.endswith("/claim") else None
        self.start()
        self.server.advance(120)
        self.assertLess(len(self.server.seen("*/claim")), 120)

    def test_it_comes_back_and_goes_on_with_what_it_holds(self) -> None:
        def handler(task: Attempt) -> str:
            task.wait(60)
            return task.envelope["taskToken"]

        kept, lost = self.server.enqueue("t"), self.server.enqueue("t")
        self.start(handler)
        self.server.until("both run", lambda: {self.server.task(i).state for i in (kept, lost)} == {"RUNNING"})
        first = self.server.worker().id
        self.server.forget()
        self.server.supersede(lost)
        self.server.until("it has come back", lambda: len(self.server.seen("/v1/workers")) == 2)
        self.done(kept)
        self.assertEqual(self.server.task(kept).worker, self.server.worker().id)
        self.assertNotEqual(self.server.worker().id, first)
        self.assertEqual(self.server.task(lost).completions, [])
        ids = [r.json()["registrationId"] for r in self.server.seen("/v1/workers")]
        self.assertNotEqual(ids[0], ids[1])

    def test_a_crash_loop_backs_off(self) -> None:
        self.server.intercept = lambda r: (410, {"error": "worker_offline"}) if r.path.endswith("/claim") else None
        self.start()
        self.server.advance(300)
        self.assertLess(len(self.server.seen("/v1/workers")), 60)

    def test_a_refused_registration_is_raised(self) -> None:
        self.server.intercept = lambda r: (403, {"error": "forbidden"})
        self.start()
        self.server.until("it ends", lambda: self.ended)
        self.assertEqual(str(getattr(self.ended[0], "code", "")), "forbidden")

    def test_registration_waits_for_the_server(self) -> None:
        self.server.down()
        worker = self.start()
        self.server.advance(100)
        self.server.up()
        self.server.until("it is registered", lambda: worker.registered)
        self.assertEqual(len({r.json()["registrationId"] for r in self.server.seen("/v1/workers")}), 1)

    def test_a_strict_lease_ends_the_handler_and_nothing_is_sent_of_it(self) -> None:
        ends: List[float] = []

        def handler(task: Attempt) -> None:
            task.on_end(lambda end: ends.append(self.server.clock.now()))
            task.wait(1000)

        task = self.server.enqueue("t")
        self.start(handler, client={"lease": "strict"})
        self.server.until("it beats", lambda: self.server.task(task).beats >= 2)
        accepted = max(r.at for r in self.beats() if r.status == 200)
        self.server.down()
        self.server.advance(100)
        self.assertEqual(len(ends), 1)
        self.assertAlmostEqual(ends[0], accepted + 30, places=2)
        self.server.up()
        self.server.advance(50)
        self.assertEqual(self.server.task(task).completions, [])


class Stops(Working):
    def test_beats_go_on_while_work_finishes(self) -> None:
        task = self.server.enqueue("t")
        worker = self.start(lambda t: t.wait(18))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        self.server.enqueue("t", "nobody claims this one")
        self.assertIsNone(self.stop(worker))
        self.assertEqual(self.server.task(task).state, "SUCCEEDED")
        drained = self.server.seen(f"/v1/workers/{self.server.worker().id}/drain")[0].at
        self.assertGreaterEqual(len([r for r in self.beats() if r.at > drained]), 1)
        self.assertEqual(len(self.server.seen("*/started")), 1 if len(self.server.seen("*/started")) == 1 else 2)

    def beat_often(self) -> None:
        self.server.__exit__()
        self.server = Server(interval=1, timeout=3)
        self.addCleanup(self.server.__exit__)

    def listed_until_the_end(self, task_ids: List[str], since: float) -> None:
        """Each inventory from a moment on names these tasks, and the last call of all gives them back."""
        late = [r.json()["tasks"] for r in self.beats() if r.at > since]
        self.assertGreater(len(late), 1)
        for tasks in late:
            self.assertLessEqual(set(task_ids), {t["taskId"] for t in tasks})
        self.assertEqual(self.server.requests[-1].path.rsplit("/", 1)[1], "deregister")
        for task in task_ids:
            self.assertEqual((self.server.task(task).state, self.server.task(task).completions), ("QUEUED", []))

    def test_what_gives_up_at_the_soft_stop_is_given_back_and_the_rest_is_completed(self) -> None:
        self.beat_often()

        def handler(task: Attempt) -> str:
            if task.payload == "fails before":
                task.wait(5)
                raise ValueError("no")
            try:
                task.wait(1000)
            except lubdub.Stopping:
                if task.payload == "returns":
                    Event(self.server.clock).wait(3)
                    return "in time"
                if task.payload == "fails after":
                    raise lubdub.Failure("half done", "DATA_QUALITY", retryable=False) from None
                if task.payload == "is stopped":
                    raise lubdub.Stopped("loading") from None
                raise
            return ""

        ids = {
            p: self.server.enqueue("t", p) for p in ("fails before", "returns", "gives up", "fails after", "is stopped")
        }
        worker = self.start(handler)
        self.server.until("they run", lambda: {self.server.task(t).state for t in ids.values()} == {"RUNNING"})
        began = self.server.clock.now()
        error = self.stop(worker)
        self.assertTrue(20 <= self.server.clock.now() - began < 25)
        back = sorted([ids["gives up"], ids["fails after"], ids["is stopped"]])
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, back)
        self.assertEqual(
            {p: self.server.task(ids[p]).state for p in ("fails before", "returns")},
            {"fails before": "FAILED", "returns": "SUCCEEDED"},
        )
        self.listed_until_the_end(back, began + 20)

    def test_what_was_cancelled_or_lost_before_is_not_given_back(self) -> None:
        self.beat_often()
        go_on = threading.Event()
        self.addCleanup(go_on.set)

        def handler(task: Attempt) -> None:
            try:
                task.wait(1000)
            except lubdub.End:
                if task.payload == "lost":
                    go_on.wait(30)
                else:
                    Event(self.server.clock).wait(22)
                raise

        cancelled, lost = self.server.enqueue("t", "cancelled"), self.server.enqueue("t", "lost")
        worker = self.start(handler)
        self.server.until("they run", lambda: {self.server.task(i).state for i in (cancelled, lost)} == {"RUNNING"})
        self.server.cancel(cancelled, "enough")
        self.server.supersede(lost)
        self.server.advance(2)
        self.assertIsNone(self.stop(worker))
        self.assertEqual(self.server.task(cancelled).state, "CANCELLED")
        self.assertEqual(self.server.task(lost).completions, [])

    def test_the_hard_stop_gives_back_what_still_runs(self) -> None:
        self.beat_often()
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        task = self.server.enqueue("t")
        worker = self.start(lambda t: go_on.wait(30))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        began = self.server.clock.now()
        error = self.stop(worker)
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, [task])
        self.assertTrue(25 <= self.server.clock.now() - began < 27)
        self.listed_until_the_end([task], began)
        go_on.set()
        self.server.until("the handler ends", lambda: not worker.active_count)
        self.assertEqual(self.server.task(task).completions, [])

    def test_the_end_reports_that_no_server_confirmed_it(self) -> None:
        self.server.enqueue("t")
        worker = self.start(lambda t: t.wait(1000))
        self.server.until("it runs", lambda: worker.active_count)
        self.server.advance(1)
        self.server.down()
        self.assertRegex(
            str(self.stop(worker)), "^1 task was not finished and given back: task_0001. No server confirmed that"
        )

    def test_a_completion_that_no_server_confirmed_is_given_back(self) -> None:
        self.server.intercept = (
            lambda r: (503, {"error": "store_unavailable"}) if r.path.endswith("/completed") else None
        )
        task = self.server.enqueue("t")
        worker = self.start(lambda t: None)
        self.server.until("it completes", lambda: self.server.seen("*/completed"))
        error = self.stop(worker)
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, [task])

    def test_kill_skips_to_it(self) -> None:
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        task = self.server.enqueue("t")
        worker = self.start(lambda t: go_on.wait(30))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        began = self.server.clock.now()
        worker.kill()
        self.server.until("the worker ends", lambda: self.ended)
        self.assertIsInstance(self.ended[0], lubdub.Unfinished)
        self.assertLess(self.server.clock.now() - began, 5)

    def test_the_server_drains(self) -> None:
        task = self.server.enqueue("t")
        self.start(lambda t: t.wait(60))
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        self.server.drain()
        self.server.until("the worker ends", lambda: self.ended)
        self.assertEqual((self.ended[0], self.server.task(task).state), (None, "SUCCEEDED"))

    def test_the_watchdog(self) -> None:
        task, moving = self.server.enqueue("t"), self.server.enqueue("t", "moves")
        ends: List[BaseException] = []

        def handler(t: Attempt) -> None:
            try:
                for pct in range(10):
                    t.wait(20)
                    if t.payload:
                        t.progress(pct)
            except lubdub.Stuck as end:
                ends.append(end)
                raise

        self.start(handler, watchdog=50)
        self.done(task)
        self.assertEqual(self.server.task(task).error["category"], "TIMEOUT")  # pyright: ignore
        self.assertEqual(self.server.task(task).error["message"], "no progress for 50 s")  # pyright: ignore
        self.assertEqual(self.done(moving).state, "SUCCEEDED")
        self.assertEqual(len(ends), 1)

    def test_a_task_takes_too_long(self) -> None:
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        heeding, deaf = self.server.enqueue("t", True), self.server.enqueue("t", False)
        with self.assertLogs("lubdub.worker", "WARNING") as logs:
            self.start(lambda t: t.wait(1000) if t.payload else go_on.wait(30), task_timeout=60)
            for task in (heeding, deaf):
                self.assertEqual(self.done(task).error["category"], "TIMEOUT")
        self.assertIn("goes on though it was to end", "\n".join(logs.output))

    def test_a_tasks_own_limit_goes_before_the_default_but_not_before_the_workers(self) -> None:
        own, other = self.server.enqueue("t", runTimeoutMs=3_600_000), self.server.enqueue("t")
        worker = self.start(lambda t: t.wait(1000))
        self.assertEqual(self.done(other).error["category"], "TIMEOUT")
        self.assertEqual(self.done(own).state, "SUCCEEDED")
        self.stop(worker)
        own = self.server.enqueue("t", runTimeoutMs=3_600_000)
        self.start(lambda t: t.wait(1000), task_timeout=60)
        self.assertEqual(self.done(own).error["category"], "TIMEOUT")

    def test_a_timeout_that_leaves_no_room_for_one_retry_after(self) -> None:
        for timeout, warned in ((3.0, False), (2.999, True)):
            self.end()
            self.server.__exit__()
            self.server = Server(interval=1, timeout=timeout)
            self.addCleanup(self.server.__exit__)
            with self.assertLogs("lubdub.worker", "INFO") as logs:
                worker = self.start()
                self.server.until("it is registered", lambda: worker.registered)
            self.assertEqual("no room for one Retry-After" in "\n".join(logs.output), warned)


class Held(Working):
    def sent_since(self, moment: int) -> List[str]:
        return [f"{r.method} {r.path}" for r in self.server.requests[moment:]]

    def test_a_worker_that_is_forced_offline_stops_and_sends_nothing_more(self) -> None:
        ends: List[Any] = []
        cleaned: List[float] = []

        def handler(task: Attempt) -> str:
            task.on_end(ends.append)
            try:
                task.wait(1000)
            except lubdub.Lost:
                Event(self.server.clock).wait(3)
                cleaned.append(self.server.clock.now())
                if task.payload == "gives up":
                    raise
            return "done"

        for by in ("beat", "claim"):
            self.end()
            self.ended, ends[:], cleaned[:] = [], [], []
            self.server.__exit__()
            self.server = Server()
            self.addCleanup(self.server.__exit__)
            ids = [self.server.enqueue("t", payload) for payload in ("returns", "gives up")]
            self.start(handler, concurrency=2 if by == "beat" else 3)  # with no free place nothing is claimed
            self.server.until("they run", lambda ids=ids: {self.server.task(i).state for i in ids} == {"RUNNING"})
            self.server.advance(1)
            self.server.force_offline()
            self.server.until("it is told", lambda: ends)
            sent = len(self.server.requests)
            self.server.until("the worker ends", lambda: self.ended)
            self.server.advance(100)
            with self.subTest(by=by):
                self.assertEqual([type(end).__name__ for end in ends], ["Lost", "Lost"])
                self.assertEqual(len(cleaned), 2)
                self.assertEqual(self.sent_since(sent), [])
                self.assertEqual([self.server.task(i).completions for i in ids], [[], []])
                error = self.ended[0]
                assert isinstance(error, lubdub.ForcedOffline)
                self.assertIn(f"lubdub worker resume {self.server.worker().id}", str(error))

    def test_a_registration_of_one_that_is_held_ends_the_worker(self) -> None:
        self.start()
        self.server.until("it is registered", lambda: self.server.store.workers)
        held = self.server.worker().id
        self.server.force_offline()
        self.server.until("it ends", lambda: self.ended)
        sent = len(self.server.requests)
        self.start()
        self.server.until("the second one ends", lambda: len(self.ended) == 2)
        self.server.advance(100)
        self.assertEqual(self.sent_since(sent), ["POST /v1/workers"])
        error = self.ended[1]
        assert isinstance(error, lubdub.ForcedOffline)
        self.assertIn(f"lubdub worker resume {held}", str(error))
        self.server.resume()
        worker = self.start()
        self.server.until("the third one is registered", lambda: worker.registered)

    def test_one_that_comes_back_and_is_held_ends_too(self) -> None:
        ends: List[Any] = []
        self.server.enqueue("t")
        self.start(lambda task: (task.on_end(ends.append), task.wait(1000)))
        self.server.until("it runs", lambda: self.server.task("task_0001").state == "RUNNING")
        refused = {"error": "worker_held_offline", "machineId": "m", "remedy": "lubdub machine resume m"}
        self.server.intercept = lambda r: (409, refused) if r.path == "/v1/workers" else None
        self.server.forget()
        self.server.until("it ends", lambda: self.ended)
        self.server.advance(100)
        self.assertIn("`lubdub machine resume m`", str(self.ended[0]))
        self.assertEqual(len(self.server.seen("/v1/workers")), 2)
        self.assertEqual(([type(end).__name__ for end in ends], self.server.seen("*/completed")), (["Lost"], []))


class Drained(Working):
    def test_a_worker_on_a_drained_machine_waits_until_it_is_resumed(self) -> None:
        task = self.server.enqueue("t", 7)
        self.server.store.drained = True
        with self.assertLogs("lubdub.worker", "INFO") as logs:
            worker = self.start(machine_id="m7")
            self.server.until("it beats", lambda: self.server.store.workers and len(self.beats()) > 3)
        self.assertEqual(
            [line for line in logs.output if "is drained" in line],
            ["INFO:lubdub.worker:Machine m7 is drained; waiting until it is resumed"],
        )
        self.assertEqual((self.server.seen("*/claim"), self.ended), ([], []))
        self.server.resume_machine()
        self.assertEqual(self.done(task).output, 7)
        self.server.drain_machine()  # while it is at work it drains as ever
        self.server.until("it ends", lambda: self.ended)
        self.assertEqual((self.ended, self.server.requests[-1].path.rsplit("/", 1)[1]), ([None], "deregister"))
        self.assertFalse(worker.registered)

    def test_a_signal_ends_one_that_waits(self) -> None:
        self.server.store.drained = True
        worker = self.start()
        self.server.until("it beats", lambda: self.server.store.workers and self.beats())
        self.assertIsNone(self.stop(worker))
        self.assertEqual((self.server.seen("*/claim"), self.server.worker().status), ([], "OFFLINE"))


class Signals(TestCase):
    def test_a_signal_and_a_second_one(self) -> None:
        with Server(clock=Clock(), interval=3600, timeout=7200) as server:  # no beat wakes the main thread meanwhile
            task = server.enqueue("t")
            worker = lubdub.Worker("default", client=server.client())
            go_on = threading.Event()

            @worker.handler("t")
            def handle(t: Attempt) -> None:  # pyright: ignore[reportUnusedFunction]
                signal.pthread_kill(
                    threading.get_ident(), signal.SIGTERM
                )  # not to the main thread, which waits and does not wake up
                for _ in range(500):
                    if server.worker().draining:
                        break
                    time.sleep(0.01)
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
                go_on.wait(30)

            with self.assertRaises(lubdub.Unfinished) as caught:
                worker.run()
            go_on.set()
            self.assertEqual(caught.exception.task_ids, [task])
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)


class Probes(TestCase):
    def test_the_probe_says_whether_beats_are_on_time(self) -> None:
        with Server() as server:
            worker = lubdub.Worker("default", client=server.client(), probe="127.0.0.1:0")
            worker.handle("t", lambda t: None)
            server.hand.spawn(lambda: worker.run(signals=False), "test-worker")
            server.until("it is registered", lambda: worker.registered)
            url = server.seen("/v1/workers")[0].json()["probeUrl"]
            server.advance(100)
            with urllib.request.urlopen(url) as answer:
                self.assertEqual((answer.status, answer.read()), (200, b"alive\n"))
            server.hand._now += 16  # pyright: ignore[reportPrivateUsage]  # and nothing has run
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(url)
            self.assertEqual(caught.exception.code, 503)
            caught.exception.close()
            server.jump(0)
            worker.kill()
            server.until("it has left", lambda: not worker.registered)


class BadUse(Working):
    def refused(self, words: str, act: Callable[[], Any]) -> None:
        with self.assertRaises(lubdub.ConfigurationError) as caught:
            act()
        self.assertIn(words, str(caught.exception))

    def test_what_cannot_work_is_refused_before_anything_is_sent(self) -> None:
        client = self.server.client()

        def make(**options: Any) -> lubdub.Worker:
            return lubdub.Worker(options.pop("queue", "default"), client=client, **options)

        self.refused("from which one to claim", lambda: make(queue=""))
        self.refused("1 is the least", lambda: make(concurrency=0))
        self.refused("is negative", lambda: make(watchdog=-1))
        self.refused("must not come before", lambda: make(soft_stop=30, hard_stop=20))
        self.refused("must not come before", lambda: make(soft_stop=26))
        os.environ["TERMINATION_GRACE_PERIOD_SECONDS"] = "25"
        self.refused("terminationGracePeriodSeconds", lambda: make(hard_stop=25))
        make(hard_stop=24)
        del os.environ["TERMINATION_GRACE_PERIOD_SECONDS"]
        self.refused("there is no handler", lambda: make().run())
        self.refused("for no type", lambda: make().handle("", lambda t: None))
        uncallable: Any = None
        self.refused("cannot be called", lambda: make().handle("t", uncallable))
        worker = make(types=["t", "u"])
        worker.handle("t", lambda t: None)
        self.refused("two handlers for 't'", lambda: worker.handle("t", lambda t: None))
        self.refused("'u' would be claimed", worker.run)
        bad = make(probe="nonsense")
        bad.handle("t", lambda t: None)
        self.refused("give host:port", lambda: bad.run(signals=False))
        self.refused("use ca_file", lambda: lubdub.Client("http://127.0.0.1:1", transport=self.server, isolated=True))
        self.assertEqual(self.server.requests, [])
        os.environ.update(LUBDUB_URL="")
        self.refused("set LUBDUB_URL", lubdub.Worker)

    def test_the_stops_follow_the_orchestrators_grace(self) -> None:
        client = self.server.client()
        for grace, given, soft, hard in (
            ("", {}, 20, 25),
            ("30", {}, 20, 25),
            ("120", {}, 110, 115),
            ("6", {}, 4, 5),
            ("3", {}, 2, 2.5),
            ("0", {}, 0, 0),
            ("nonsense", {}, 20, 25),
            ("120", {"soft_stop": 1, "hard_stop": 2}, 1, 2),
            ("120", {"hard_stop": 10}, 8, 10),
            ("120", {"soft_stop": 90}, 90, 115),
        ):
            os.environ["TERMINATION_GRACE_PERIOD_SECONDS"] = grace
            options: Any = given
            worker = lubdub.Worker(client=client, **options)
            self.assertEqual((worker.soft_stop, worker.hard_stop), (soft, hard), grace)

    def test_it_runs_once(self) -> None:
        worker = self.start()
        self.server.until("it is registered", lambda: worker.registered)
        self.refused("before run", lambda: worker.handle("u", lambda t: None))
        self.stop(worker)
        self.refused("has run already", worker.run)

    def test_a_task_whose_timeouts_cannot_work_is_not_begun(self) -> None:
        task = self.server.enqueue("t", heartbeatIntervalMs=10_000, heartbeatTimeoutMs=15_000)
        with self.assertLogs("lubdub.worker", "INFO") as logs:
            self.start()
            self.server.advance(15)
        self.assertEqual(self.server.task(task).completions, [])
        self.assertIn("less than twice its interval", "\n".join(logs.output))
