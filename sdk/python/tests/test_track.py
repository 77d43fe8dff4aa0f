"""One task, from its envelope to its end."""

import asyncio
import json
import threading
from typing import Any, Dict, Iterator, List

import lubdub
from lubdub.task import Task
from lubdub.testing import Request, Server

from .helpers import TestCase


class Counted(lubdub.Metrics):
    """Records the metrics."""

    def __init__(self) -> None:
        self.calls: List[Any] = []

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        self.calls.append(("beat", result, attempts))

    def refused(self, code: str) -> None:
        self.calls.append(("refused", code))

    def lease_left(self, ratio: float) -> None:
        self.calls.append(("lease", round(ratio, 1)))

    def completed(self, outcome: str) -> None:
        self.calls.append(("completed", outcome))


class Tracked(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.__exit__)

    def begin(self, **fields: Any) -> Task:
        options = fields.pop("options", {})
        return self.server.client(**options).track(self.server.dispatch(**fields)).start()

    def beats(self) -> List[Request]:
        return self.server.seen("/v1/heartbeats")

    def items(self) -> List[Dict[str, Any]]:
        return [item for r in self.beats() for item in r.json()["heartbeats"]]


class Beats(Tracked):
    def test_the_first_at_once_and_then_by_the_interval_of_the_newest_answer(self) -> None:
        self.begin(heartbeatIntervalMs=10_000)
        self.server.hand.settle()
        self.assertEqual([r.path for r in self.server.requests], ["/v1/tasks/task_0001/started", "/v1/heartbeats"])
        self.assertEqual([r.at for r in self.server.requests], [1000.0, 1000.0])
        self.server.task("task_0001").fields["heartbeatIntervalMs"] = 4_000
        self.server.until("three more", lambda: len(self.beats()) == 5)
        gaps = [b.at - a.at for a, b in zip(self.beats(), self.beats()[1:])]
        self.assertTrue(5 <= gaps[0] <= 10, gaps)
        self.assertTrue(2 <= gaps[1] <= 4, gaps)
        self.assertTrue(all(3.6 <= gap <= 4 for gap in gaps[2:]), gaps)

    def test_the_attempts_of_a_process_share_one_request_per_tick(self) -> None:
        client = self.server.client()
        for number in range(1500):
            client.track(self.server.dispatch(heartbeatIntervalMs=10_000 + number)).start()
        self.server.advance(30)
        before = len(self.beats())
        self.server.advance(40)
        sizes = [len(r.json()["heartbeats"]) for r in self.beats()[before:]]
        self.assertEqual(set(sizes), {1000, 500})
        self.assertLessEqual(len(sizes), 2 * 5)

    def test_progress_coalesces_and_its_last_value_comes_before_the_completion(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        for pct in range(101):
            attempt.progress(pct, f"at {pct}")
        self.server.until("a beat", lambda: len(self.beats()) == 2)
        self.assertEqual(self.items()[1]["progressPct"], 100)
        self.server.until("another", lambda: len(self.beats()) == 3)
        self.assertNotIn("progressPct", self.items()[2])
        attempt.progress(99.5, "é" * 1024)
        attempt.done({"n": 1})
        task = self.server.task(attempt.task_id)
        self.assertEqual(task.progress, {"progressPct": 99.5, "message": "é" * 512})
        self.assertEqual(self.server.requests[-2].path, "/v1/tasks/task_0001/heartbeat")
        self.assertEqual(task.output, {"n": 1})

    def test_progress_that_cannot_wait_is_sent_once_a_second(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        attempt.progress(1, now=True)
        attempt.progress(2, now=True)
        self.server.advance(1.5)
        self.assertEqual([i.get("progressPct") for i in self.items()], [None, 2])

    def test_no_heartbeat_is_sent_after_a_completion(self) -> None:
        attempt = self.begin(heartbeatIntervalMs=1000, heartbeatTimeoutMs=5000)
        self.server.advance(5)
        attempt.done()
        sent = len(self.server.requests)
        self.server.advance(60)
        self.assertEqual(len(self.server.requests), sent)
        self.assertEqual(self.server.requests[-1].path, "/v1/tasks/task_0001/completed")

    def test_a_renewed_token_replaces_the_old_one(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()

        def renew(r: Request) -> Any:
            return 200, {
                "results": [
                    {
                        "taskId": "task_0001",
                        "status": 200,
                        "acknowledged": True,
                        "shouldCancel": False,
                        "nextHeartbeatMs": 1000,
                        "taskToken": "newer",
                        "serverTime": "2026-01-01T00:00:00.000Z",
                        "tokenExpiresAt": "2026-01-01T01:00:00.000Z",
                    }
                ]
            }

        self.server.intercept = lambda r: renew(r) if r.path == "/v1/heartbeats" else None
        self.server.until("two beats", lambda: len(self.beats()) == 3)
        self.assertEqual(self.items()[2]["taskToken"], "newer")
        self.server.intercept = lambda r: (200, {"acknowledged": True, "finalState": "SUCCEEDED"})
        attempt.done()
        self.assertEqual(self.server.requests[-1].headers["Authorization"], "Bearer newer")

    def test_metrics(self) -> None:
        metrics = Counted()
        attempt = self.begin(options={"metrics": metrics})
        self.server.hand.settle()
        attempt.done()
        self.assertEqual(metrics.calls, [("lease", 1.0), ("beat", "ok", 1), ("completed", "SUCCEEDED")])


class Ends(Tracked):
    def end_of(self, attempt: Task) -> BaseException:
        self.server.until("the end", lambda: attempt.cause)
        assert attempt.cause is not None
        return attempt.cause

    def silent(self) -> None:
        sent = len(self.server.requests)
        self.server.advance(300)
        self.assertEqual(len(self.server.requests), sent)

    def test_cancel(self) -> None:
        attempt = self.begin()
        self.server.cancel(attempt.task_id, "enough")
        cause = self.end_of(attempt)
        self.assertIsInstance(cause, lubdub.Cancelled)
        self.assertEqual(str(cause), "the task is cancelled: enough")
        self.assertRaises(lubdub.Cancelled, attempt.check)
        beats = len(self.beats())
        self.server.until("beats go on", lambda: len(self.beats()) > beats + 1)
        attempt.progress(40, "cleaning up")
        attempt.stopped("load", {"rows": 3})
        done = self.server.task(attempt.task_id).completions[0]
        self.assertEqual(
            (done["outcome"], done["cancelledDuringPhase"], done["partialProgress"]), ("CANCELLED", "load", {"rows": 3})
        )

    def test_success_in_spite_of_a_cancel_counts(self) -> None:
        attempt = self.begin()
        self.server.cancel(attempt.task_id)
        self.end_of(attempt)
        attempt.done(1)
        self.assertEqual(self.server.task(attempt.task_id).state, "SUCCEEDED")

    def test_a_cancel_before_it_starts(self) -> None:
        envelope = self.server.dispatch()
        self.server.cancel(envelope["taskId"], "late")
        with self.assertRaises(lubdub.Cancelled):
            with self.server.client().track(envelope) as task:
                task.check()
        self.assertEqual(self.server.task(envelope["taskId"]).state, "CANCELLED")

    def test_superseded(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        self.server.supersede(attempt.task_id)
        cause = self.end_of(attempt)
        assert isinstance(cause, lubdub.Superseded)
        self.assertEqual(cause.by, 2)
        self.assertRaises(lubdub.Superseded, attempt.done)
        self.silent()

    def test_expired_and_deadline(self) -> None:
        for reason, kind in (("HEARTBEAT_TIMEOUT", lubdub.Expired), ("DEADLINE_EXCEEDED", lubdub.DeadlineExceeded)):
            with self.subTest(reason):
                attempt = self.begin()
                self.server.hand.settle()
                self.server.expire(attempt.task_id, reason)
                self.assertIsInstance(self.end_of(attempt), kind)
                self.assertRaises(kind, lambda: attempt.progress(1))
                self.assertRaises(kind, lambda: attempt.fail("late"))
                self.silent()

    def test_over_before_it_starts(self) -> None:
        envelope = self.server.dispatch()
        self.server.supersede(envelope["taskId"])
        self.assertRaises(lubdub.Superseded, self.server.client().track(envelope).start)
        self.assertEqual(self.beats(), [])

    def test_a_completion_that_comes_too_late(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        self.server.supersede(attempt.task_id)
        self.assertRaises(lubdub.Superseded, attempt.done)
        self.assertIsInstance(attempt.cause, lubdub.Superseded)

    def test_a_heartbeat_that_is_rejected_otherwise_ends_nothing_and_is_logged_once(self) -> None:
        attempt = self.begin()
        self.server.intercept = (
            lambda r: (
                200,
                {"results": [{"taskId": attempt.task_id, "status": 403, "error": "forbidden", "message": "no"}]},
            )
            if r.path == "/v1/heartbeats"
            else None
        )
        with self.assertLogs("lubdub", "ERROR") as logs:
            self.server.advance(400)
        self.assertEqual(len(logs.output), 1)
        self.assertGreater(len(self.beats()), 5)
        self.assertIsNone(attempt.cause)


class Trouble(Tracked):
    def test_backoff_stays_within_the_interval_and_the_next_answer_is_taken(self) -> None:
        attempt = self.begin(heartbeatIntervalMs=10_000)
        self.server.hand.settle()
        self.server.down()
        self.server.advance(200)
        gaps = [b.at - a.at for a, b in zip(self.beats()[1:], self.beats()[2:])]
        self.assertGreater(len(gaps), 20)
        self.assertLessEqual(max(gaps), 2.5)
        self.assertIsNone(attempt.cause)
        self.server.up()
        accepted = self.server.task(attempt.task_id).beats
        self.server.until("a beat is accepted", lambda: self.server.task(attempt.task_id).beats > accepted)
        attempt.done()

    def test_retry_after_is_the_minimum_pause(self) -> None:
        self.begin(heartbeatIntervalMs=10_000)
        self.server.intercept = (
            lambda r: (503, {"error": "overloaded"}, {"Retry-After": "4"}) if r.path == "/v1/heartbeats" else None
        )
        self.server.advance(60)
        gaps = [b.at - a.at for a, b in zip(self.beats(), self.beats()[1:])]
        self.assertGreater(len(gaps), 5)
        self.assertTrue(all(4 <= gap <= 6.5 for gap in gaps[1:]), gaps)

    def test_a_strict_lease_ends_at_its_end_and_a_patient_one_does_not(self) -> None:
        strict = self.begin(heartbeatIntervalMs=2000, heartbeatTimeoutMs=10_000, options={"lease": "strict"})
        patient = self.begin(heartbeatIntervalMs=2000, heartbeatTimeoutMs=10_000)
        self.server.advance(20)
        self.assertIsNone(strict.cause)
        self.server.down()
        ends: List[float] = []
        strict.on_end(lambda end: ends.append(self.server.clock.now()))
        accepted = max(r.at for r in self.beats() if r.status == 200 and strict.task_id in r.body.decode())
        self.server.advance(60)
        self.assertEqual(len(ends), 1)
        self.assertAlmostEqual(ends[0], accepted + 10, places=2)
        self.assertIsInstance(strict.cause, lubdub.LeaseEnded)
        self.assertRaises(lubdub.LeaseEnded, strict.done)
        self.assertIsNone(patient.cause)
        self.server.up()
        patient.done()
        self.assertEqual(self.server.seen(f"/v1/tasks/{strict.task_id}/completed"), [])

    def test_after_the_host_has_slept_a_strict_lease_ends_first(self) -> None:
        attempt = self.begin(options={"lease": "strict"})
        self.server.hand.settle()
        self.server.hand._now += 500  # pyright: ignore[reportPrivateUsage]  # as if nothing had run yet
        self.assertRaises(lubdub.LeaseEnded, attempt.check)
        self.assertRaises(lubdub.LeaseEnded, attempt.done)

    def test_a_completion_is_repeated_with_the_same_bytes(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        self.server.lose_answers("*/completed", "*/completed")
        answer = self.server.hand.run(lambda: attempt.done({"b": 1, "a": [1.5, "é"]}))
        sent = self.server.seen("*/completed")
        self.assertEqual(len(sent), 3)
        self.assertEqual(len({r.body for r in sent}), 1)
        self.assertEqual(answer["finalState"], "SUCCEEDED")
        self.assertEqual(attempt.answer, answer)
        self.assertEqual(len(self.server.task(attempt.task_id).completions), 1)

    def test_a_completion_is_given_up_when_its_token_has_expired(self) -> None:
        attempt = self.begin(tokenTtlSeconds=100)
        self.server.hand.settle()
        self.server.down()
        self.assertRaises(lubdub.NoAnswer, lambda: self.server.hand.run(attempt.done))
        self.assertTrue(80 <= self.server.clock.now() - 1000 <= 100)

    def test_a_call_with_an_invalid_response_is_repeated(self) -> None:
        attempt = self.begin()
        self.server.hand.settle()
        answers: List[Any] = [{}, {"results": []}, {"results": [{"taskId": "other", "status": 200}]}, {"results": [7]}]
        wrong: Iterator[Any] = iter([(200, answer) for answer in answers])
        self.server.intercept = lambda r: next(wrong, None) if r.path == "/v1/heartbeats" else None
        accepted = self.server.task(attempt.task_id).beats
        with self.assertLogs("lubdub", "WARNING"):
            self.server.until("a beat is accepted", lambda: self.server.task(attempt.task_id).beats > accepted)

    def test_closing_the_client_ends_the_work(self) -> None:
        client = self.server.client()
        attempt = client.track(self.server.dispatch()).start()
        client.close()
        self.assertIsInstance(attempt.cause, lubdub.ClientClosed)
        self.server.advance(100)
        self.assertLessEqual(len(self.beats()), 1)


class Contexts(Tracked):
    def test_with(self) -> None:
        with self.server.client().track(self.server.dispatch()) as task:
            task.output = [1]
        self.assertEqual(self.server.task(task.task_id).output, [1])
        with self.server.client().track(self.server.dispatch()) as task:
            task.done("said inside")
        self.assertEqual(self.server.task(task.task_id).output, "said inside")

    def failing(self, error: BaseException) -> Dict[str, Any]:
        envelope = self.server.dispatch()
        with self.assertRaises(type(error)):
            with self.server.client().track(envelope):
                raise error
        return self.server.task(envelope["taskId"]).completions[0]

    def test_errors_have_their_categories(self) -> None:
        failed = self.failing(KeyError("x"))
        self.assertEqual((failed["outcome"], failed["error"]["category"]), ("FAILED", "USER_CODE"))
        self.assertEqual(failed["error"]["message"], "KeyError: 'x'")
        self.assertNotIn("retryable", failed["error"])
        self.assertIn("in failing", failed["error"]["stackTrace"])
        failed = self.failing(lubdub.Failure("bad row", "DATA_QUALITY", retryable=False))["error"]
        self.assertEqual(
            (failed["category"], failed["message"], failed["retryable"]), ("DATA_QUALITY", "bad row", False)
        )
        self.assertEqual(self.failing(lubdub.Stopped("load", 3))["partialProgress"], 3)
        self.assertEqual(self.failing(KeyboardInterrupt())["error"]["category"], "USER_CODE")
        self.assertRaises(ValueError, lambda: lubdub.Failure("x", "OTHER"))  # pyright: ignore[reportArgumentType]

    def test_a_stack_is_cut_to_16_kib_and_keeps_its_end(self) -> None:
        failed = self.failing(ValueError("é" * 30_000))["error"]
        self.assertLessEqual(len(failed["message"].encode()), 16 << 10)
        self.assertLessEqual(len(failed["stackTrace"].encode()), 16 << 10)
        self.assertTrue(failed["stackTrace"].endswith("é\n"))

    def test_an_output_that_cannot_be_sent(self) -> None:
        large = "x" * (256 << 10)
        for output, words in (
            (object(), "not JSON"),
            (float("nan"), "not JSON"),
            (large, "a server takes 262144"),
            ("\ud800", "JSON"),
        ):
            envelope = self.server.dispatch()
            with self.assertRaises(lubdub.OutputError) as caught:
                with self.server.client().track(envelope) as task:
                    task.output = output
            self.assertIn(words, str(caught.exception))
            failed = self.server.task(envelope["taskId"]).completions[0]["error"]
            self.assertEqual((failed["category"], failed["retryable"]), ("USER_CODE", False))

    def test_run(self) -> None:
        client = self.server.client()
        attempt = client.run(self.server.dispatch(payload=20), lambda task: task.payload + 1)
        self.assertEqual(self.server.task(attempt.task_id).output, 21)
        attempt = client.run(self.server.dispatch(), lambda task: 1 // 0)
        self.assertEqual(attempt.answer, {**(attempt.answer or {}), "finalState": "FAILED", "willRetry": False})

    def test_async_with(self) -> None:
        async def work() -> None:
            async with self.server.client().track(self.server.dispatch()) as task:
                await asyncio.sleep(0)
                task.output = "async"

        asyncio.run(work())
        self.assertEqual(self.server.task("task_0001").output, "async")

    def test_async_with_is_cancelled_with_the_task(self) -> None:
        caught: List[BaseException] = []

        async def work() -> None:
            try:
                async with self.server.client().track(self.server.dispatch()):
                    self.server.cancel("task_0001", "enough")
                    await asyncio.get_running_loop().run_in_executor(None, self.server.advance, 40)
                    await asyncio.sleep(3600)
            except lubdub.Cancelled as error:
                caught.append(error)
                await asyncio.sleep(0)  # the task itself is not cancelled

        asyncio.run(work())
        self.assertEqual(str(caught[0]), "the task is cancelled: enough")
        self.assertEqual(self.server.task("task_0001").state, "CANCELLED")

    def test_async_with_that_is_cancelled_by_others_is_a_failure(self) -> None:
        inside: List[bool] = []

        async def work() -> None:
            async with self.server.client().track(self.server.dispatch()):
                inside.append(True)
                await asyncio.sleep(3600)

        async def main() -> None:
            task = asyncio.ensure_future(work())
            while not inside:
                await asyncio.sleep(0.005)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assertEqual(self.server.task("task_0001").state, "FAILED")

    def test_async_with_that_is_cancelled_at_its_start_sends_no_heartbeats(self) -> None:
        entered, proceed = threading.Event(), threading.Event()

        def hold(r: Request) -> None:
            if r.path.endswith("/started"):
                entered.set()
                proceed.wait(30)

        self.server.intercept = hold

        async def work() -> None:
            async with self.server.client().track(self.server.dispatch()):
                self.fail("it was cancelled before")

        async def main() -> None:
            task = asyncio.ensure_future(work())
            while not entered.is_set():
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.sleep(0.01)
            proceed.set()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.server.until("it is completed", lambda: self.server.task("task_0001").state == "FAILED")


class BadUse(Tracked):
    def test_early_errors(self) -> None:
        client = self.server.client()
        self.assertRaises(lubdub.ConfigurationError, client.track({}).start)
        with self.assertRaises(lubdub.ConfigurationError) as caught:
            client.track(self.server.dispatch(heartbeatIntervalMs=6000, heartbeatTimeoutMs=10_000)).start()
        self.assertIn("less than twice its interval", str(caught.exception))
        with self.assertLogs("lubdub", "WARNING") as logs:
            client.track(self.server.dispatch(heartbeatIntervalMs=1000, heartbeatTimeoutMs=2000)).start()
        self.assertIn("no room for one Retry-After", logs.output[0])

    def test_a_handle_that_is_used_wrongly(self) -> None:
        attempt = self.begin()
        bad: List[Any] = [-1, 100.1, float("nan"), True, "50", None]
        for pct in bad:
            self.assertRaises(lubdub.ConfigurationError, attempt.progress, pct)
        attempt.fail("broken")
        self.assertRaises(lubdub.EndedError, attempt.done)
        self.assertRaises(lubdub.EndedError, attempt.progress, 5)
        self.assertEqual(len(self.server.task(attempt.task_id).completions), 1)
        other = self.begin()
        other.abandon()
        self.assertRaises(lubdub.EndedError, other.done)

    def test_no_text_shows_the_tasks_token(self) -> None:
        attempt = self.begin()
        self.server.intercept = lambda r: (400, {"error": "invalid_request"})
        with self.assertRaises(lubdub.ApiError) as caught:
            attempt.done()
        for text in (repr(attempt), str(caught.exception), repr(caught.exception)):
            self.assertNotIn("task-task_0001", text)

    def test_last_progress_of_the_attempt_before(self) -> None:
        attempt = self.begin()
        attempt.progress(30, "a third")
        self.server.until("a beat", lambda: self.server.task(attempt.task_id).progress)
        envelope = json.loads(json.dumps(self.server.supersede(attempt.task_id)))
        after = self.server.client().track(envelope).start()
        self.assertEqual(after.last_progress, {"progressPct": 30, "message": "a third"})
