"""Checkpoints: what an attempt leaves for the next one."""

import threading
from typing import Any, Callable, Dict, List, Optional

import lubdub
from lubdub._clock import Event
from lubdub.task import Task
from lubdub.testing import Request

from .test_track import Tracked
from .workers import WorkerCase

LARGEST = 16 << 10  # bytes of a checkpoint
MOST = 1 << 20  # bytes of progress and checkpoints per request


def reported(item: Dict[str, Any]) -> Dict[str, Any]:
    """What an item reports in addition to the sign of life."""
    return {name: item[name] for name in ("progressPct", "message", "details") if name in item}


class Checkpoints(Tracked):
    def next_beat(self) -> Dict[str, Any]:
        """What the next heartbeat reports."""
        before = len(self.beats())
        self.server.until("a beat", lambda: len(self.beats()) > before)
        return reported(self.items()[-1])

    def next_attempt(self, attempt: Task) -> Task:
        return self.server.client().track(self.server.supersede(attempt.task_id)).start()

    def test_the_next_attempts_have_it_whichever_set_it(self) -> None:
        values: List[Any] = [{"frame": 7, "é": [1.5, None]}, [], "", 0, False]
        for value in values:
            with self.subTest(value=value):
                first = self.begin()
                self.assertIsNone(first.last_checkpoint)
                first.checkpoint(value)
                self.server.until(
                    "it is sent", lambda task_id=first.task_id: self.server.task(task_id).details == value
                )
                second = self.next_attempt(first)
                self.assertEqual(second.last_checkpoint, value)
                self.assertIsNone(second.last_progress)
                second.progress(30)
                self.server.until("it is sent", lambda second=second: self.server.task(second.task_id).progress)
                third = self.next_attempt(second)
                self.assertEqual(third.last_progress, {"progressPct": 30, "message": None, "details": value})

    def test_progress_without_a_checkpoint_has_none(self) -> None:
        attempt = self.begin()
        attempt.progress(30)
        self.next_beat()
        after = self.next_attempt(attempt)
        self.assertEqual((after.last_progress, after.last_checkpoint), ({"progressPct": 30, "message": None}, None))

    def test_it_is_encoded_at_once(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        value = {"frames": [1]}
        attempt.checkpoint(value)
        value["frames"].append(2)
        self.assertEqual(self.next_beat(), {"details": {"frames": [1]}})

    def test_it_goes_with_the_next_heartbeat_and_independently_of_progress(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        attempt.progress(5, "five")
        attempt.checkpoint("replaced")
        attempt.checkpoint(1)
        self.assertEqual(self.next_beat(), {"progressPct": 5, "message": "five", "details": 1})
        self.assertEqual(self.next_beat(), {})
        attempt.progress(6)
        self.assertEqual(self.next_beat(), {"progressPct": 6, "message": "five"})
        attempt.checkpoint(2)
        self.assertEqual(self.next_beat(), {"details": 2})
        sent = len(self.server.requests)
        attempt.done()
        self.assertEqual([r.path for r in self.server.requests[sent:]], ["/v1/tasks/task_0001/completed"])

    def test_it_is_sent_until_a_heartbeat_with_it_was_accepted(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        refusal = {"taskId": attempt.task_id, "status": 503, "error": "store_unavailable"}
        for answer in ((503, {"error": "store_unavailable"}), (200, {"results": [refusal]})):
            with self.subTest(answer[0]):
                attempt.checkpoint(answer[0])
                self.server.intercept = lambda r, answer=answer: answer if r.path == "/v1/heartbeats" else None
                self.assertEqual([self.next_beat() for _ in range(3)], [{"details": answer[0]}] * 3)
                self.server.intercept = None
                self.assertEqual([self.next_beat() for _ in range(2)], [{"details": answer[0]}, {}])

    def test_a_change_during_a_heartbeat_is_not_taken_for_sent(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        attempt.checkpoint(1)

        def change(r: Request) -> None:
            self.server.intercept = None
            attempt.checkpoint(2)

        self.server.intercept = change
        self.assertEqual([self.next_beat() for _ in range(3)], [{"details": 1}, {"details": 2}, {}])

    def test_a_value_that_cannot_be_sent_is_an_error_at_the_call(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        deep: List[List[Any]] = [[], []]  # of 100 and 101 levels
        for levels, value in zip((99, 100), deep):
            for _ in range(levels):
                value[:] = [list(value)]
            value.append(['[\\"['])
        for value in ("x" * (LARGEST - 2), "é" * (LARGEST // 2 - 1), deep[0]):
            attempt.checkpoint(value)
        with self.assertRaisesRegex(lubdub.ConfigurationError, "bytes"):  # the size is looked at first
            attempt.checkpoint([deep[1], "x" * LARGEST])
        cycle: List[Any] = []
        cycle.append(cycle)
        bad: List[Any] = [
            None,
            float("nan"),
            object(),
            {1, 2},
            cycle,
            "\ud800",
            deep[1],
            "x" * (LARGEST - 1),
            "é" * (LARGEST // 2),
        ]
        attempt.checkpoint("kept")
        moved, attempt.moved = attempt.moved, 0.0
        for value in bad:
            self.assertRaises(lubdub.ConfigurationError, attempt.checkpoint, value)
        self.assertEqual(attempt.moved, 0.0)
        attempt.moved = moved
        self.assertEqual(self.next_beat(), {"details": "kept"})
        self.assertEqual(self.next_beat(), {})

    def test_an_attempt_that_is_over_takes_none(self) -> None:
        attempt = self.begin()
        attempt.done()
        self.assertRaises(lubdub.EndedError, attempt.checkpoint, 1)
        other = self.begin()
        self.server.hand.settle()
        self.server.supersede(other.task_id)
        self.server.until("the end", lambda: other.cause)
        self.assertRaises(lubdub.Superseded, other.checkpoint, 1)

    def test_an_unsent_one_comes_before_the_completion_whatever_that_is(self) -> None:
        ends: List[Callable[[Task], Any]] = [
            lambda task: task.done(),
            lambda task: task.fail("broken"),
            lambda task: task.stopped(),
        ]
        for end in ends:
            attempt = self.begin()
            self.server.hand.settle()
            sent = len(self.server.requests)
            attempt.checkpoint({"frame": 7})
            end(attempt)
            last = self.server.requests[sent:]
            self.assertEqual([r.path.rsplit("/", 1)[1] for r in last], ["heartbeat", "completed"])
            self.assertEqual(last[0].json(), {"attempt": 1, "details": {"frame": 7}})

    def test_a_heartbeat_has_a_mib_of_them_and_the_rest_is_next(self) -> None:
        client = self.server.client()
        attempts = [client.track(self.server.dispatch(heartbeatIntervalMs=10_000)).start() for _ in range(180)]
        self.server.advance(30)  # they share a request
        value = "x" * (LARGEST - 2)
        for attempt in attempts:
            attempt.progress(5)
            attempt.checkpoint(value)
        seen: List[str] = []
        for _ in range(3):
            before = len(self.items())
            self.next_beat()
            items = self.items()[before:]
            self.assertEqual(len(items), 180)
            some = [item for item in items if reported(item)]
            self.assertTrue(all(reported(item) == {"progressPct": 5, "details": value} for item in some))
            self.assertLessEqual(len(some) * LARGEST, MOST)
            seen += [item["taskId"] for item in some]
            for attempt in attempts[:50]:
                attempt.checkpoint(value)  # attempts that wait have precedence over these
                attempt.progress(5)
        self.assertEqual(set(seen), {attempt.task_id for attempt in attempts})

    def test_the_server_of_tests_refuses_what_is_too_long(self) -> None:
        attempt = self.begin()
        attempt.abandon()
        client, token = self.server.client(), str(attempt.envelope["taskToken"])
        long: Any = {"taskId": attempt.task_id, "attempt": 1, "details": "é" * (LARGEST // 2)}
        with self.assertRaises(lubdub.ApiError) as caught:
            client.heartbeat(attempt.task_id, long, token=token)
        refused = caught.exception
        self.assertEqual((refused.status, refused.code, refused.fields["field"]), (400, "invalid_request", "details"))
        accepted: Any = {**long, "taskToken": token, "details": "x" * (LARGEST - 2)}
        items: Any = [{**long, "taskToken": token}, accepted]
        results: List[Any] = list(client.heartbeats({"heartbeats": items}, token="")["results"])
        self.assertEqual([(r["status"], r.get("field")) for r in results], [(400, "details"), (200, None)])
        view: Any = client.get_task(attempt.task_id)
        self.assertEqual(view["details"], accepted["details"])
        self.server.supersede(attempt.task_id)
        dead: Any = [{**accepted, "details": 1}]
        self.assertEqual(client.heartbeats({"heartbeats": dead}, token="")["results"][0]["status"], 409)
        self.assertEqual(self.server.task(attempt.task_id).details, accepted["details"])


class Workers(WorkerCase):
    def test_a_snoozed_task_continues_at_its_checkpoint(self) -> None:
        def handler(task: Task) -> Any:
            frame = task.last_checkpoint or 0
            if frame == 2:
                return frame
            task.checkpoint(frame + 1)
            raise lubdub.Snooze(60)

        self.start(handler)
        task = self.done(self.server.enqueue("t"))
        self.assertEqual((task.output, task.attempt), (2, 3))

    def test_the_workers_token_sends_an_unsent_one_if_the_tasks_has_expired(self) -> None:
        def answer(r: Request) -> Any:
            expired = r.path.endswith("/heartbeat") and r.headers["Authorization"].startswith("Bearer task-")
            return (401, {"error": "unauthorized"}) if expired else None

        self.server.intercept = answer
        self.start(lambda task: task.checkpoint(7))
        self.assertEqual(self.done(self.server.enqueue("t")).details, 7)

    def test_it_moves_the_watchdog(self) -> None:
        def handler(task: Task) -> str:
            for frame in range(5):
                task.wait(40)
                task.checkpoint(frame)
            return "done"

        self.start(handler, watchdog=50)
        self.assertEqual(self.done(self.server.enqueue("t")).output, "done")

    def stop_with_checkpoints(self, count: int) -> List[Any]:
        """Stops a worker whose tasks report at the soft stop; those with an odd payload give up then, and others run until after the hard
        stop. Returns the last checkpoints, without what makes them large."""
        proceed = threading.Event()
        self.addCleanup(proceed.set)

        def handler(task: Task) -> None:
            try:
                task.wait(1000)
            except lubdub.Stopping:
                task.progress(50)
                task.checkpoint([task.payload, "x" * (LARGEST - 10)])
                if task.payload % 2:
                    raise
                proceed.wait(30)

        ids = [self.server.enqueue("t", number) for number in range(count)]
        worker = self.start(handler)
        self.server.until("they run", lambda: all(self.server.task(t).state == "RUNNING" for t in ids))
        error = self.stop(worker)
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, ids)
        self.assertEqual(self.server.requests[-1].path.rsplit("/", 1)[1], "deregister")
        tasks = [self.server.task(t) for t in ids]
        self.assertEqual({t.state for t in tasks}, {"QUEUED"})
        return [[t.details[0], t.progress] if t.details is not None else None for t in tasks]

    def test_tasks_that_are_returned_at_a_stop_keep_theirs(self) -> None:
        found = self.stop_with_checkpoints(100)
        self.assertEqual(found, [[number, {"progressPct": 50}] for number in range(100)])
        last = [r for r in self.server.requests if b"details" in r.body]
        self.assertEqual(len(last), 100)
        self.assertTrue(all(r.path.startswith("/v1/tasks/") for r in last))
        tokens = {r.headers["Authorization"] for r in last}
        self.assertEqual(tokens, {f"Bearer {self.server.worker().token}"})  # those of the tasks may have expired

    def reports_at_a_stop(self, answer: Callable[[Request, float], Any]) -> List[Request]:
        """The requests since the hard stop, or under way then, with the checkpoint of a task that is returned. answer gets the seconds
        since the begin of the stop. The hard stop is after 25."""
        proceed = threading.Event()
        self.addCleanup(proceed.set)

        def handler(task: Task) -> None:
            try:
                task.wait(1000)
            except lubdub.Stopping:
                task.checkpoint(7)
                proceed.wait(30)

        self.server.store.interval = 1
        task_id = self.server.enqueue("t")
        worker = self.start(handler, soft_stop=22, hard_stop=25)
        self.server.until("it runs", lambda: self.server.task(task_id).state == "RUNNING")
        began = self.server.clock.now()
        self.server.intercept = lambda r: answer(r, self.server.clock.now() - began) if b"details" in r.body else None
        self.stop(worker)
        self.assertEqual(self.server.task(task_id).details, 7)
        return [r for r in self.server.requests if b"details" in r.body and r.status != 503]

    def test_a_report_in_a_heartbeat_that_is_in_flight_at_a_stop_is_not_sent_again(self) -> None:
        def answer(_: Request, since: float) -> None:
            Event(self.server.clock).wait(26 - since)

        found = self.reports_at_a_stop(answer)
        self.assertEqual([r.path.split("/")[2] for r in found], ["workers"])

    def test_a_heartbeat_at_a_stop_leaves_out_the_report_that_is_sent_alone(self) -> None:
        def answer(r: Request, since: float) -> Any:
            if since < 25:
                return 503, {"error": "store_unavailable"}
            Event(self.server.clock).wait(26.5 - since if r.path.startswith("/v1/tasks/") else 0)

        found = self.reports_at_a_stop(answer)
        self.assertEqual([r.path.split("/")[2] for r in found], ["tasks"])
        self.assertTrue([r for r in self.beats() if found[0].at <= r.at < found[0].at + 1.5], "no heartbeat meanwhile")

    def stop_with_a_cut_completion(self, refuse: bool) -> None:
        """Stops a worker with a completion that is refused until then. refuse: so is the checkpoint of its other task."""
        refused: List[Request] = []

        def answer(r: Request) -> Any:
            if r.path.endswith("/ends/completed"):
                refused.append(r)
            elif not refuse or b"details" not in r.body:
                return None
            return 503, {"error": "store_unavailable"}

        def handler(task: Task) -> None:
            if task.payload == "runs":
                try:
                    task.wait(1000)
                finally:
                    task.checkpoint("x")

        def omitting() -> List[Request]:
            """The inventories without it."""
            after = [r for r in self.beats() if refused and r.at >= refused[0].at and "tasks" in r.json()]
            return [r for r in after if "ends" not in [item["taskId"] for item in r.json()["tasks"]]]

        self.server.intercept = answer
        for name in ("ends", "runs"):
            self.server.enqueue("t", name, taskId=name)
        worker = self.start(handler, concurrency=2)
        self.server.until("an inventory omits it", omitting)
        error = self.stop(worker)
        assert isinstance(error, lubdub.Unfinished)
        self.assertEqual(error.task_ids, ["ends", "runs"])
        self.assertEqual(len(omitting()), 1, "the server takes what two of them omit as lost, and counts it")

    def test_no_inventory_at_a_stop_omits_a_task_whose_completion_was_cut(self) -> None:
        self.stop_with_a_cut_completion(False)
        self.assertEqual(self.server.task("runs").details, "x")

    def test_nor_does_one_that_is_due_while_the_last_heartbeat_is_repeated(self) -> None:
        self.server.store.interval = 0.5
        with self.assertLogs("lubdub.worker", "WARNING") as logs:
            self.stop_with_a_cut_completion(True)
        self.assertIsNone(self.server.task("runs").details)
        self.assertEqual(len([line for line in logs.output if "of 1 tasks were not sent: " in line]), 1)

    def test_the_server_may_ask_to_wait_longer_than_the_stop_does(self) -> None:
        refused = self.refuse(1000, {"Retry-After": "5"})
        self.assertEqual(self.stop_with_checkpoints(1), [None])
        self.assertEqual(len([r for r in refused if r.path.startswith("/v1/tasks/")]), 1)

    def test_a_task_that_is_over_at_the_last_heartbeat_is_not_given_back(self) -> None:
        self.server.intercept = lambda r: (
            (409, {"error": "task_already_terminal", "state": "FAILED"}) if b"details" in r.body else None
        )

        def handler(task: Task) -> None:
            try:
                task.wait(1000)
            finally:
                task.checkpoint(1)

        task_id = self.server.enqueue("t")
        worker = self.start(handler)
        self.server.until("it runs", lambda: self.server.task(task_id).state == "RUNNING")
        self.assertIsNone(self.stop(worker))

    def refuse(self, times: int, headers: Optional[Dict[str, str]] = None) -> List[Request]:
        """Refuses the first heartbeats with a checkpoint."""
        refused: List[Request] = []

        def answer(r: Request) -> Any:
            if b"details" not in r.body or len(refused) >= times:
                return None
            refused.append(r)
            return 503, {"error": "store_unavailable"}, headers or {}

        self.server.intercept = answer
        return refused

    def test_the_last_heartbeat_of_a_stop_is_repeated(self) -> None:
        refused = self.refuse(2)
        self.assertEqual(self.stop_with_checkpoints(2), [[number, {"progressPct": 50}] for number in range(2)])
        self.assertEqual(len(refused), 2)

    def test_the_last_heartbeat_of_a_stop_delays_it_by_a_few_seconds_at_most(self) -> None:
        refused = self.refuse(1000)
        began = self.server.clock.now()
        self.assertEqual(self.stop_with_checkpoints(2), [None, None])
        self.assertGreater(len(refused), 1)
        self.assertLess(self.server.clock.now() - began, 30)

    def test_the_server_of_tests_refuses_an_inventory_with_one_that_is_too_long(self) -> None:
        task_id = self.server.enqueue("t")
        self.start(lambda task: task.wait(1000))
        self.server.until("it runs", lambda: self.server.task(task_id).state == "RUNNING")
        worker = self.server.worker()
        items: Any = [{"taskId": task_id, "attempt": 1}, {"taskId": "x", "attempt": 1, "details": "x" * LARGEST}]
        with self.assertRaises(lubdub.ApiError) as caught:
            self.server.client().worker_heartbeat(worker.id, {"tasks": items}, token=worker.token)
        self.assertEqual((caught.exception.status, caught.exception.fields["field"]), (400, "tasks[1].details"))
        self.quiet()
