"""What is logged, and where."""

import contextlib
import io
import logging
import re
from typing import Any, List

import lubdub
from lubdub._beats import CALM
from lubdub.task import Task

from .workers import WorkerCase


class Log(WorkerCase):
    def setUp(self) -> None:
        super().setUp()
        for name in ("", "lubdub"):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(logging.NOTSET if name else logging.WARNING)
        self.stderr = io.StringIO()
        redirected = contextlib.redirect_stderr(self.stderr)
        redirected.__enter__()
        self.addCleanup(redirected.__exit__, None, None, None)
        self.addCleanup(self.quiet)

    def lines(self, *words: str) -> List[str]:
        return [line for line in self.stderr.getvalue().splitlines() if all(word in line for word in words)]

    def one(self, *words: str) -> str:
        found = self.lines(*words)
        self.assertEqual(len(found), 1, (words, self.stderr.getvalue()))
        return found[0]


class Where(Log):
    def test_without_configuration_it_is_standard_error_and_with_one_only_what_is_configured(self) -> None:
        worker = self.start()
        self.server.until("it is registered", lambda: worker.registered)
        self.one("INFO", "Worker registered with ID")
        chosen = io.StringIO()
        handler = logging.StreamHandler(chosen)
        for name in ("", "lubdub", "lubdub.worker"):
            logger = logging.getLogger(name)
            logger.addHandler(handler)
            before = self.stderr.getvalue()
            try:
                logging.getLogger("lubdub.worker").warning("said to %r", name)
            finally:
                logger.removeHandler(handler)
            self.assertEqual(chosen.getvalue().count(f"said to {name!r}"), 1)
            self.assertEqual(self.stderr.getvalue(), before)

    def test_a_client_alone_writes_warnings_only(self) -> None:
        logging.getLogger("lubdub").info("a detail")
        logging.getLogger("lubdub").warning("a warning")
        self.assertEqual(self.lines("a detail"), [])
        self.one("WARNING", "a warning")


class Failures(Log):
    def test_a_failed_handler_is_logged_once_with_the_result_for_its_task(self) -> None:
        def handler(task: Task) -> Any:
            if task.payload == "error":
                raise ValueError("the disk is full")
            if task.payload == "failure":
                raise lubdub.Failure("no such column", "DATA_QUALITY", retryable=False)
            if task.payload == "output":
                return object()
            if task.payload == "cancelled":
                self.server.cancel(task.task_id, "enough")
                task.wait(1000)
            return 1

        def intercept(request: Any) -> Any:
            if request.path.endswith("/error/completed"):
                return 200, {"finalState": "FAILED", "willRetry": True, "nextAttempt": 2}
            return (403, {"error": "forbidden"}) if request.path.endswith("/refused/completed") else None

        self.server.intercept = intercept
        payloads = ("error", "failure", "output", "cancelled", "good")
        for payload in payloads:
            self.server.enqueue("t", payload, taskId=payload)
        self.server.enqueue("t", "failure", taskId="refused")
        self.server.lose_answers("/v1/tasks/failure/completed")
        self.start(handler)
        for payload in payloads[1:]:
            self.done(payload)
        self.server.until(
            "it was refused", lambda: self.server.seen("*/refused/completed") and self.server.seen("*/error/completed")
        )
        self.server.advance(60)
        for words in (
            ("WARNING", "error of type t, attempt 1", "ValueError: the disk is full; it will be retried as attempt 2"),
            ("ERROR", "failure of type t, attempt 1", "no such column; it will not be retried"),
            ("ERROR", "output of type t", "the output cannot be sent", "not be retried"),
            ("ERROR", "refused of type t", "no such column; its completion was not accepted", "403 forbidden"),
        ):
            self.one("failed:", *words)
        self.assertEqual((len(self.lines("failed:")), self.lines("is lost")), (4, []))
        self.assertEqual(self.stderr.getvalue().count("Traceback"), 1)  # of the unexpected error

    def test_so_is_the_work_of_a_client(self) -> None:
        def work(task: Task) -> None:
            raise ValueError("no")

        client = self.server.client()
        envelope = self.server.dispatch(taskId="mine")
        self.server.hand.run(lambda: client.run(envelope, work))
        self.one("Task mine, attempt 1, failed: ValueError: no; it will not be retried")


class Attempts(Log):
    def test_a_further_attempt_and_its_loss_are_one_line_each(self) -> None:
        def handler(task: Task) -> None:
            if task.attempt == 1:
                raise lubdub.Snooze(1)
            task.wait(1000)

        task = self.server.enqueue("t", taskId="a")
        self.start(handler)
        self.server.until("it runs again", lambda: self.lines("begins"))
        self.one("INFO", "Attempt 2 of task a of type t begins")
        self.server.supersede(task)
        self.server.advance(60)
        self.one("WARNING", "Task a of type t, attempt 2, is lost: a newer attempt took this one's place")
        self.assertEqual(len(self.lines("begins")), 1)
        self.assertEqual((len(self.lines("WARNING")), self.lines("ERROR")), (1, []))

    def lost(self, cause: str) -> None:
        self.server.until("it is lost", lambda: self.lines("is lost"))
        self.server.advance(60)
        self.one("WARNING", "Task a of type t, attempt 1, is lost: " + cause)
        self.assertEqual(self.lines("ERROR"), [])

    def test_a_loss_that_the_completion_reports(self) -> None:
        answer = {"error": "attempt_mismatch", "expectedAttempt": 2}
        self.server.intercept = lambda r: (409, answer) if r.path.endswith("/completed") else None
        self.server.enqueue("t", taskId="a")
        self.start()
        self.lost("attempt 2 took this one's place")

    def test_a_lease_that_has_ended(self) -> None:
        task = self.server.enqueue("t", taskId="a")
        self.start(lambda task: task.wait(1000), client={"lease": "strict"})
        self.server.until("it runs", lambda: self.server.task(task).state == "RUNNING")
        self.server.down()
        self.lost("no heartbeat was accepted for 30")


class Outages(Log):
    def check(self, seconds: float) -> None:
        self.one("No answer from Lubdub")
        again = self.one("Lubdub answers again")
        found = re.search(r"after ([0-9.]+) s", again)
        assert found is not None
        self.assertTrue(seconds - 35 < float(found[1]) < seconds + 45, again)
        self.assertEqual(self.lines("ERROR"), [])
        self.assertEqual(len(self.lines("WARNING")), 2)

    def test_one_line_when_it_begins_and_one_when_it_is_over(self) -> None:
        own: Any = {"heartbeatIntervalMs": 5_000, "heartbeatTimeoutMs": 45_000}
        for how in ("down", "503"):
            with self.subTest(how=how):
                self.stderr.truncate(0)
                self.server.intercept = lambda r: None
                ids = [self.server.enqueue("t", 30), self.server.enqueue("t", 150, **own), self.server.enqueue("t", 1)]
                worker = self.start(lambda task: task.wait(task.payload))
                self.server.until("they run", lambda ids=ids: self.server.task(ids[2]).over)
                if how == "down":
                    self.server.down()
                else:
                    self.server.intercept = lambda r: (503, {"error": "store_unavailable"}, {"Retry-After": "1"})
                self.server.advance(100)
                self.server.intercept = None
                self.server.up()
                for task in ids:
                    self.done(task)
                self.server.advance(60)
                self.check(100)
                worker.close()
                self.server.until("it ends", lambda worker=worker: not worker.registered)

    def test_it_is_over_though_a_claim_waits_for_tasks(self) -> None:
        self.server.intercept = (
            lambda r: (503, {"error": "store_unavailable"}) if r.path.endswith(("/claim", "/heartbeat")) else None
        )
        self.start()
        self.server.advance(25)
        self.server.intercept = None
        self.server.advance(29)  # less than a claim waits
        self.check(25)

    def test_a_registration_that_waits_for_the_server(self) -> None:
        self.server.down()
        worker = self.start()
        self.server.advance(100)
        self.server.up()
        self.server.until("it is registered", lambda: worker.registered)
        self.check(100)

    def test_of_what_a_client_tracks(self) -> None:
        attempt = self.server.client().track(self.server.dispatch()).start()
        self.server.advance(40)
        self.server.down()
        self.server.advance(100)
        self.server.up()
        self.server.advance(60)
        self.check(100)
        self.server.hand.run(attempt.done)

    def test_an_error_response_is_logged_once_and_is_no_outage(self) -> None:
        self.server.intercept = (
            lambda r: (403, {"error": "forbidden"}) if r.path.endswith(("/heartbeat", "/heartbeats")) else None
        )
        attempt = self.server.client().track(self.server.dispatch()).start()
        self.start()
        self.server.advance(25)
        self.assertEqual(len(self.lines("WARNING", "Heartbeats are refused")), 2)
        self.assertEqual(len(self.lines("WARNING")), 2)
        attempt.abandon()


class Late(Log):
    def test_a_heartbeat_thread_that_was_held_up_is_one_line_until_it_was_on_time_for_a_while(self) -> None:
        worker = self.start(lambda task: task.wait(1000))
        task = self.server.task(self.server.enqueue("t"))
        self.server.until("it runs", lambda: task.state == "RUNNING")
        self.server.advance(60)
        self.server.jump(14)  # the host slept
        for _ in range(9):
            self.server.hand.stall(3.8)  # heartbeats are 1 to 3 s late, less than a sixth of the timeout
        self.server.advance(25)
        self.assertEqual(self.lines("held up"), [])
        for pause, lines in ((25, 1), (25, 1), (CALM - 20, 1), (CALM + 25, 2)):
            self.server.advance(pause)
            self.server.hand.stall(17)  # as if code had held the GIL; a heartbeat was due within the first 10 s or so
            found = self.lines("WARNING", "held up", "stopped", "too little CPU", "GIL", "isolated=True")
            self.assertEqual((len(found), len(self.lines("held up"))), (lines, lines))
            late = re.search(r"for ([0-9.]+) s", found[-1])
            assert late is not None
            self.assertTrue(17 - 11 < float(late[1]) <= 17, found[-1])
            self.assertEqual(task.state, "RUNNING")
        worker.kill()

    def test_attempts_that_are_tracked(self) -> None:
        attempt = self.server.hand.run(self.server.client().track(self.server.dispatch()).start)
        self.server.advance(60)
        for _ in range(9):
            self.server.hand.stall(11)  # heartbeats are 3 to 6 s late, less than a sixth of the timeout
        self.server.advance(60)
        self.assertEqual(self.lines("held up"), [])
        self.server.hand.stall(50)
        self.one("WARNING", "held up", "isolated=True")
        attempt.abandon()
