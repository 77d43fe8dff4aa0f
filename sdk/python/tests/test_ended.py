"""The end of each attempt, as the metrics hook gets it."""

import threading
from typing import Any, Callable, Dict, List, Optional

import lubdub
from lubdub._clock import Event
from lubdub.task import Task

from .workers import WorkerCase


class Noted(lubdub.Metrics):
    def __init__(self) -> None:
        self.ends: List[lubdub.AttemptEnd] = []

    def ended(self, attempt: lubdub.AttemptEnd) -> None:
        self.ends.append(attempt)


class EndedCase(WorkerCase):
    def setUp(self) -> None:
        super().setUp()
        self.noted = Noted()
        self.addCleanup(self.quiet)

    def begin(self, handler: Optional[Callable[[Task], Any]] = None, **options: Any) -> lubdub.Worker:
        return self.start(handler, client={"metrics": self.noted, **options.pop("client", {})}, **options)

    def running(self, task: str) -> None:
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")

    def one(self) -> lubdub.AttemptEnd:
        self.server.until("its end is reported", lambda: self.noted.ends)
        self.server.advance(60)
        self.assertEqual(len(self.noted.ends), 1)
        return self.noted.ends[0]

    def outcome(self) -> str:
        return self.one().outcome


class Running(WorkerCase):
    def test_all_tasks_of_a_claim_are_listed_before_one_is_started(self) -> None:
        self.addCleanup(self.quiet)
        counts: List[int] = []  # the first is reported after the listing, and before a task is started

        class Counts(lubdub.Metrics):
            def running(self, count: int) -> None:
                counts.append(count)

        tasks = [self.server.enqueue("t") for _ in range(3)]
        self.start(lambda task: None, client={"metrics": Counts()})
        for task in tasks:
            self.done(task)
        self.assertEqual(counts[0], 3)

    def test_the_last_report_has_the_last_number_of_running_tasks(self) -> None:
        self.addCleanup(self.quiet)
        counts: List[int] = []
        gates, idle = [threading.Event(), threading.Event()], threading.Event()
        for gate in gates:
            self.addCleanup(gate.set)

        class Slow(lubdub.Metrics):
            def running(self, count: int) -> None:
                if gates[0].is_set() and count == 1:
                    gates[1].set()
                    while worker.active_count:
                        pass
                    idle.wait(0.2)  # for the report of the second end, which must come later
                counts.append(count)
                if count == 0:
                    idle.set()

        def handler(task: Task) -> None:
            gates[int(task.payload)].wait(30)

        worker = self.start(handler, client={"metrics": Slow()})
        for number in range(2):
            self.server.enqueue("t", number)
        self.server.until("they run", lambda: worker.active_count == 2)
        gates[0].set()
        begun = counts.index(2) + 1
        self.server.until("both ends are reported", lambda: len(counts) == begun + 2)
        self.assertEqual(counts[begun:], [1, 0])


class Outcomes(EndedCase):
    def test_the_outcomes_of_completions(self) -> None:
        def handler(task: Task) -> Any:
            if task.payload in ("retried", "failed"):
                raise ValueError(task.payload)
            if task.payload == "snoozed" and task.attempt == 1:
                raise lubdub.Snooze(100)
            if task.payload == "cancelled":
                self.server.cancel(task.task_id, "enough")
                task.wait(1000)
            if task.payload == "itself":
                task.done(1)
            return 1

        retried = {"finalState": "FAILED", "willRetry": True, "nextAttempt": 2}
        self.server.intercept = lambda r: (200, retried) if r.path.endswith("/retried/completed") else None
        payloads = ("succeeded", "retried", "failed", "snoozed", "cancelled", "itself")
        expected = [
            ("t", "default", 1, "SUCCEEDED", False),
            ("t", "default", 1, "FAILED", True),
            ("t", "default", 1, "FAILED", False),
            ("t", "default", 1, "SNOOZED", True),
            ("t", "default", 2, "SUCCEEDED", False),
            ("t", "default", 1, "CANCELLED", False),
            ("t", "default", 1, "SUCCEEDED", False),
        ]
        self.begin(handler)
        for payload in payloads:
            count = 2 if payload == "snoozed" else 1
            before = len(self.noted.ends)
            self.server.enqueue("t", payload, taskId=payload, retry={"maxAttempts": 1})
            self.server.until(payload, lambda count=count, before=before: len(self.noted.ends) == before + count)
        found = [(end.type, end.queue, end.attempt, end.outcome, end.will_retry) for end in self.noted.ends]
        self.assertEqual(found, expected)

    def test_an_error_in_the_hook_is_logged_and_has_no_other_effect(self) -> None:
        def fail(attempt: lubdub.AttemptEnd) -> None:
            raise RuntimeError("no")

        self.noted.ended = fail
        with self.assertLogs("lubdub", "ERROR") as logs:
            self.begin()
            for task in [self.server.enqueue("t") for _ in range(2)]:
                self.assertEqual(self.done(task).state, "SUCCEEDED")
            self.server.until("they are counted", lambda: self.server.worker().completed == 2)
        self.assertIn("a metrics callback failed", logs.output[0])

    def test_a_task_without_a_type(self) -> None:
        self.begin(default=print)
        self.server.enqueue(None)
        self.assertEqual(self.one().type, "")

    def test_one_that_was_cancelled_before_its_handler_ran(self) -> None:
        calls: List[Task] = []
        self.server.intercept = lambda r: (
            (200, {"shouldCancel": True, "cancelReason": "enough"}) if r.path.endswith("/started") else None
        )
        self.begin(calls.append)
        self.server.enqueue("t")
        end = self.one()
        self.assertEqual((end.outcome, end.duration, calls), ("CANCELLED", 0, []))

    def test_none_for_one_that_was_not_begun(self) -> None:
        self.server.intercept = lambda r: (
            (409, {"error": "task_already_terminal"}) if r.path.endswith("/started") else None
        )
        self.begin()
        self.server.enqueue("t")
        self.server.until("it is claimed", lambda: self.server.seen("*/started"))
        self.server.advance(60)
        self.assertEqual(self.noted.ends, [])

    def test_a_handler_that_still_runs_after_its_time_limit(self) -> None:
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        worker = self.begin(lambda task: proceed.wait(30), task_timeout=20)
        self.server.enqueue("t", cancelGracePeriodMs=5000, retry={"maxAttempts": 1})
        end = self.one()
        self.assertEqual(end.outcome, "FAILED")
        self.assertAlmostEqual(end.duration, 25, 3)
        proceed.set()
        self.server.until("the handler ends", lambda: not worker.active_count)
        self.outcome()


class Lost(EndedCase):
    def lose(self, how: Callable[[str], Any], **options: Any) -> None:
        task = self.server.enqueue("t")
        self.begin(lambda task: task.wait(1000), **options)
        self.running(task)
        how(task)
        self.assertEqual(self.outcome(), "LOST")

    def test_one_that_was_superseded(self) -> None:
        self.lose(self.server.supersede)

    def test_one_that_has_expired(self) -> None:
        self.lose(lambda task: self.server.expire(task, "DEADLINE_EXCEEDED"))

    def test_one_whose_lease_has_ended(self) -> None:
        self.lose(lambda _: self.server.down(), client={"lease": "strict"})

    def refuse(self, answer: Dict[str, Any]) -> None:
        self.server.intercept = lambda r: (409, answer) if r.path.endswith("/completed") else None
        self.server.enqueue("t")
        self.begin()
        self.assertEqual(self.outcome(), "LOST")

    def test_one_whose_completion_reports_it(self) -> None:
        self.refuse({"error": "attempt_mismatch", "expectedAttempt": 2})

    def test_one_whose_completion_is_refused(self) -> None:
        self.refuse({"error": "conflict"})

    def test_one_of_a_worker_that_was_forced_offline_and_whose_handler_still_runs(self) -> None:
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        task = self.server.enqueue("t")
        worker = self.begin(lambda task: proceed.wait(30))
        self.running(task)
        self.server.force_offline()
        self.server.until("the worker ends", lambda: self.ended)
        self.assertIsInstance(self.ended[0], lubdub.ForcedOffline)
        self.assertEqual([end.outcome for end in self.noted.ends], ["LOST"])
        proceed.set()
        self.server.until("the handler ends", lambda: not worker.active_count)
        self.outcome()

    def test_one_that_was_completed_by_a_worker_that_is_forced_offline(self) -> None:
        self.server.intercept = lambda r: (503, {"error": "x"}) if r.path.endswith("/completed") else None
        self.server.enqueue("t")
        self.begin()
        self.server.until("it is completed", lambda: self.server.seen("*/completed"))
        self.server.force_offline()
        self.assertEqual(self.outcome(), "LOST")

    def test_one_that_the_heartbeat_process_completed_is_not(self) -> None:
        found: List[Task] = []
        self.server.enqueue("t")
        self.begin(lambda task: (found.append(task), task.wait(1000)))
        self.server.until("it runs", lambda: found)
        answer = {"finalState": "FAILED", "willRetry": True}
        found[0].lost_by("task_already_terminal", {"state": "FAILED", "reason": "TIMEOUT", "answer": answer})
        end = self.one()
        self.assertEqual((end.outcome, end.will_retry), ("FAILED", True))


class Returned(EndedCase):
    def test_at_the_soft_stop(self) -> None:
        task = self.server.enqueue("t")
        worker = self.begin(lambda task: task.wait(1000))
        self.running(task)
        self.assertIsInstance(self.stop(worker), lubdub.Unfinished)
        end = self.one()
        self.assertEqual((end.outcome, end.will_retry), ("RETURNED", False))
        self.assertAlmostEqual(end.duration, 20, 0)

    def test_at_the_hard_stop(self) -> None:
        proceed = threading.Event()
        self.addCleanup(proceed.set)
        task = self.server.enqueue("t")
        worker = self.begin(lambda task: proceed.wait(30))
        self.running(task)

        def slow(request: Any) -> None:
            if request.path.endswith("/deregister"):
                Event(self.server.clock).wait(3)

        self.server.intercept = slow
        self.assertIsInstance(self.stop(worker), lubdub.Unfinished)
        end = self.one()
        self.assertEqual(end.outcome, "RETURNED")
        self.assertAlmostEqual(end.duration, 25, 0)
        proceed.set()
        self.server.until("the handler ends", lambda: not worker.active_count)
        self.outcome()

    def test_one_whose_start_was_answered_after_the_hard_stop(self) -> None:
        worker: Optional[lubdub.Worker] = None

        def intercept(request: Any) -> Any:
            if not request.path.endswith("/started"):
                return None
            assert worker is not None
            worker.kill()
            Event(self.server.clock).wait(0.5)
            return 200, {}

        self.server.intercept = intercept
        worker = self.begin(client={"lease": "strict"})
        self.server.enqueue("t")
        end = self.one()
        self.assertEqual((end.outcome, end.duration), ("RETURNED", 0))

    def test_one_whose_completion_the_stop_cut(self) -> None:
        self.server.intercept = lambda r: (503, {"error": "x"}) if r.path.endswith("/completed") else None
        self.server.enqueue("t")
        worker = self.begin()
        self.server.until("it is completed", lambda: self.server.seen("*/completed"))
        self.assertIsInstance(self.stop(worker), lubdub.Unfinished)
        self.assertEqual(self.outcome(), "RETURNED")


class Times(EndedCase):
    def test_the_duration_is_that_of_the_handler(self) -> None:
        self.server.intercept = (
            lambda r: (503, {"error": "x"})
            if r.path.endswith("/completed") and self.server.clock.now() < 1100
            else None
        )
        self.server.enqueue("t")
        self.begin(lambda task: task.wait(7))
        self.assertAlmostEqual(self.one().duration, 7, 3)

    def test_the_queue_wait(self) -> None:
        delays = {"at once": 0, "later": 4}
        for name, delay in delays.items():
            self.server.enqueue("t", name, delayMs=delay * 1000)
        self.server.advance(6)
        self.begin()
        self.server.until("they end", lambda: len(self.noted.ends) == 2)
        self.assertEqual([end.queue_wait for end in self.noted.ends], [6 - delay for delay in delays.values()])

    def test_it_is_unknown_if_the_claim_was_repeated_and_never_negative(self) -> None:
        self.server.lose_answers("/v1/queues/default/claim")
        self.server.enqueue("t")
        self.begin()
        self.assertIsNone(self.one().queue_wait)
        fields: Dict[str, Any] = {"taskId": "x", "attempt": 1, "taskToken": "y", "type": "t", "state": "RUNNING"}
        times = {"readyAt": "2026-01-01T00:00:01Z", "enqueuedAt": "2026-01-01T00:00:00Z"}
        answers = [{"tasks": [{**fields, **times}]}]
        self.server.intercept = lambda r: (200, answers.pop()) if answers and r.path.endswith("/claim") else None
        self.server.until("it ends", lambda: len(self.noted.ends) == 2)
        self.assertEqual(self.noted.ends[1].queue_wait, 0)

    def test_the_first_heartbeat(self) -> None:
        began: List[float] = []

        def handler(task: Task) -> None:
            began.append(self.server.clock.now())
            task.wait(50)

        self.server.intercept = (  # the first one is not accepted
            lambda r: (503, {"error": "x"}) if r.path.endswith("/heartbeat") and len(self.beats()) == 1 else None
        )
        self.begin(handler)
        self.server.advance(5)
        self.server.enqueue("t")
        end = self.one()
        beats = [beat.at for beat in self.beats() if beat.status == 200 and beat.at < began[0] + 50]
        self.assertGreater(len(beats), 2)
        assert end.first_heartbeat is not None
        self.assertAlmostEqual(end.first_heartbeat, beats[0] - began[0], 6)

    def test_the_first_heartbeat_is_the_attempts_own_if_it_has_some(self) -> None:
        self.server.enqueue("t", heartbeatIntervalMs=2000, heartbeatTimeoutMs=6000)
        self.begin(lambda task: task.wait(9))
        first = self.one().first_heartbeat
        assert first is not None
        self.assertTrue(0 < first <= 2, first)

    def test_it_is_none_if_the_handler_returned_before(self) -> None:
        self.server.enqueue("t")
        self.begin(lambda task: task.wait(1))
        self.assertIsNone(self.one().first_heartbeat)
