"""How a handler ends its attempt without a result: Failure, RetryAfter, Permanent, Snooze, Cancelled."""

import datetime
import pickle
from typing import Any, Dict, List

import lubdub
from lubdub import errors
from lubdub._clock import Event
from lubdub.task import Task
from lubdub.failures import task_error

from .helpers import TestCase
from .workers import WorkerCase


class Values(TestCase):
    def test_a_delay_is_seconds_or_a_timedelta_up_to_366_days(self) -> None:
        delays: Dict[Any, int] = {
            0: 0,
            0.7: 700,
            0.0019: 2,
            datetime.timedelta(minutes=1): 60_000,
            datetime.timedelta(days=366): 31_622_400_000,
            -1: 0,
        }
        for delay, ms in delays.items():
            self.assertEqual(lubdub.Snooze(delay).delay_ms, ms)
            self.assertEqual(lubdub.Failure("x", retry_after=delay).retry_after_ms, ms)
        wrong: List[Any] = [float("nan"), float("inf"), 366 * 86_400 + 1, "60", None]
        for delay in wrong:
            with self.assertRaisesRegex(ValueError, "at most 366 days"):
                lubdub.Snooze(delay)
            with self.assertRaises(lubdub.ConfigurationError):
                lubdub.RetryAfter(delay, "x")

    def test_what_is_reported(self) -> None:
        self.assertEqual(
            task_error(lubdub.RetryAfter(60, "rate limit")),
            {"category": "USER_CODE", "message": "rate limit", "retryable": True, "retryAfterMs": 60_000},
        )
        self.assertEqual(
            task_error(lubdub.Permanent("no column")),
            {"category": "USER_CODE", "message": "no column", "retryable": False},
        )
        report = task_error(lubdub.Permanent(KeyError("x")))
        self.assertEqual((report["message"], report["retryable"]), ("KeyError: 'x'", False))
        self.assertIn("KeyError", report["stackTrace"])
        wrapped = lubdub.Failure(lubdub.RetryAfter(60, "rate limit"), "TIMEOUT")
        self.assertEqual((wrapped.category, wrapped.retryable, wrapped.retry_after_ms), ("TIMEOUT", True, 60_000))
        report = task_error(lubdub.RetryAfter(0, lubdub.Failure("bad row", "DATA_QUALITY")))
        del report["stackTrace"]
        self.assertEqual(
            report, {"category": "DATA_QUALITY", "message": "bad row", "retryable": True, "retryAfterMs": 0}
        )

    def test_they_survive_pickling(self) -> None:
        failure = lubdub.Failure("bad row", "DATA_QUALITY", True, retry_after=2)
        kinds: List[lubdub.LubdubError] = [
            failure,
            lubdub.RetryAfter(60, ValueError("rate limit")),
            lubdub.Permanent("no column"),
            lubdub.Snooze(0.7),
            lubdub.Stopped("load", {"rows": 3}),
            lubdub.Cancelled("no longer needed"),
        ]
        for error in kinds:
            with self.subTest(error):
                found: Any = pickle.loads(pickle.dumps(error))
                self.assertIs(found.__class__, error.__class__)
                self.assertEqual((str(found), vars(found)), (str(error), vars(error)))


class Handlers(WorkerCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.quiet)

    def ended_with(self, error: BaseException) -> Any:
        """The completed task whose handler raised this error."""

        def handler(task: Task) -> Any:
            raise error

        self.start(handler)
        return self.done(self.server.enqueue("t"))

    def test_a_snoozed_task_is_claimed_again_after_the_delay_and_counts_as_nothing(self) -> None:
        times: List[float] = []

        async def handler(task: Task) -> Any:
            times.append(self.server.clock.now())
            if task.attempt == 1:
                task.progress(40, "waiting")
                raise lubdub.Snooze(datetime.timedelta(hours=1))
            return task.last_progress

        with self.assertLogs("lubdub.worker", "DEBUG") as logs:
            self.start(handler)
            task = self.done(self.server.enqueue("t", taskId="a"))
            self.server.until("it is counted", lambda: self.server.worker().completed)
            self.server.advance(60)
        self.assertEqual((task.state, task.attempt, task.output["progressPct"]), ("SUCCEEDED", 2, 40))
        self.assertAlmostEqual(times[1] - times[0], 3600, places=2)
        first = task.completions[0]
        self.assertEqual((first["outcome"], first["delayMs"], "error" in first), ("SNOOZED", 3_600_000, False))
        self.assertEqual((self.server.worker().completed, self.server.worker().failed), (1, 0))
        lines = [line for line in logs.output if "task a/1" in line or "attempt 1" in line]
        self.assertEqual(lines, ["DEBUG:lubdub.worker:task a/1 has ended: SNOOZED"])

    def test_a_snooze_after_the_time_limit_is_no_failure(self) -> None:
        def handler(task: Task) -> Any:
            if task.attempt == 1:
                try:
                    task.wait(100)
                except lubdub.TaskTimeout:
                    raise lubdub.Snooze(5) from None

        self.start(handler, task_timeout=10)
        task = self.done(self.server.enqueue("t"))
        self.assertEqual([one["outcome"] for one in task.completions], ["SNOOZED", "SUCCEEDED"])

    def test_a_snooze_while_a_cancel_is_pending(self) -> None:
        def handler(task: Task) -> Any:
            self.server.cancel(task.task_id, "enough")
            raise lubdub.Snooze(5)

        self.start(handler)
        task = self.done(self.server.enqueue("t"))
        self.assertEqual((task.state, [one["outcome"] for one in task.completions]), ("CANCELLED", ["SNOOZED"]))

    def test_the_delay_of_a_failure_and_its_stack_are_sent(self) -> None:
        error = self.ended_with(lubdub.RetryAfter(0.7, ValueError("rate limit"))).error
        self.assertEqual((error["message"], error["retryAfterMs"]), ("ValueError: rate limit", 700))
        self.assertIs(error["retryable"], True)
        self.assertIn("in handler", error["stackTrace"])

    def test_a_handler_that_cancels_its_task_states_the_reason(self) -> None:
        done = self.ended_with(lubdub.Cancelled("no longer needed")).completions[0]
        self.assertEqual(
            (done["outcome"], done["error"]),
            ("CANCELLED", {"category": "CANCELLED", "message": "no longer needed"}),
        )

    def test_after_a_requested_cancel_the_reason_is_that_of_the_request(self) -> None:
        causes: List[Any] = []

        def handler(task: Task) -> Any:
            self.server.cancel(task.task_id, "enough")
            try:
                task.wait(100)
            except lubdub.Cancelled:
                if task.payload == "slow":  # its time limit becomes the cause meanwhile
                    Event(self.server.clock).wait(70)
                    causes.append(task.cause)
                raise

        self.start(handler, task_timeout=60)
        for payload in ("", "slow"):
            done = self.done(self.server.enqueue("t", payload)).completions[0]
            self.assertEqual((done["outcome"], "error" in done), ("CANCELLED", False))
        self.assertIsInstance(causes[0], lubdub.TaskTimeout)


class Tracked(WorkerCase):
    def begin(self, task_id: str) -> Task:
        return self.server.client().track(self.server.supersede(task_id)).start()

    def test_fail_snoozes_and_a_repeat_gets_the_same_answer(self) -> None:
        attempt = self.begin(self.server.enqueue("t"))
        self.server.lose_answers("*/completed")
        answer = self.server.hand.run(lambda: attempt.fail(lubdub.Snooze(60)))
        self.assertEqual((answer["finalState"], answer["willRetry"], answer["nextAttempt"]), ("SNOOZED", True, 2))
        task = self.server.task(attempt.task_id)
        self.assertEqual((task.state, len(task.completions)), ("QUEUED", 1))

    def test_fail_with_a_reason_cancels(self) -> None:
        attempt = self.begin(self.server.enqueue("t"))
        attempt.fail(lubdub.Cancelled("no longer needed"))
        error: Any = self.server.task(attempt.task_id).error
        self.assertEqual(error["message"], "no longer needed")

    def test_a_task_without_a_queue_cannot_be_snoozed(self) -> None:
        attempt = self.server.client().track(self.server.dispatch()).start()
        self.assertRaises(errors.TaskWithoutQueue, attempt.fail, lubdub.Snooze(60))
