"""The heartbeat process may die or stop like any other."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, Callable, Dict, List

import lubdub
from lubdub import _isolated
from lubdub._beatprocess import handle_message
from lubdub._beats import Batch, BeatEntry, Listener
from lubdub._entries import Report
from lubdub._isolated import IsolatedBatch
from lubdub._pipe import Outbox
from lubdub.task import Task

from .helpers import HERE, Answer, ReceivedRequest, TestCase, WebServer

INTERVAL = 100  # ms
PROGRAM = """
import ctypes, sys
import lubdub

class Printed(lubdub.Metrics):
    def ended(self, attempt):
        print("ended:", attempt.outcome, attempt.will_retry, attempt.first_heartbeat, file=sys.stderr)

client = lubdub.Client(sys.argv[1], token="x", metrics=Printed())
worker = lubdub.Worker("q", client=client, isolated=True, soft_stop=0.2, hard_stop=0.4, task_timeout=float(sys.argv[2]))

@worker.handler("t")
def hold_the_gil(task):
    task.checkpoint({"frame": 7})
    task.wait(0.1)  # the heartbeat process gets it
    ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)  # until there is something to read

worker.run()
"""


@unittest.skipUnless(hasattr(signal, "SIGSTOP"), "processes cannot be stopped on this system")
class Children(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.changed = threading.Condition()
        self.interval, self.refusing, self.expired, self.over = INTERVAL, False, False, False
        self.web_server: WebServer = self.web(self.answer)

    def answer(self, request: ReceivedRequest) -> Answer:
        with self.changed:
            self.changed.notify_all()
        if self.refusing and request.path == "/v1/workers/w/heartbeat" and b"details" in request.body:
            return 503, {"error": "store_unavailable"}, {}
        if self.expired and request.headers.get("authorization") == "Bearer y":
            return 401, {"error": "unauthorized"}, {}
        answer_body: Dict[str, Any] = {"acknowledged": True, "finalState": "SUCCEEDED"}
        if request.path.endswith("/completed"):
            if self.over:
                return 409, {"error": "task_already_terminal", "state": "FAILED"}, {}
            answer_body["finalState"] = request.json()["outcome"]
        if request.path == "/v1/heartbeats":
            answer_body["results"] = [
                {"taskId": i["taskId"], "status": 200, "nextHeartbeatMs": INTERVAL}
                for i in request.json()["heartbeats"]
            ]
        if request.path == "/v1/workers":
            return (
                201,
                {
                    "workerId": "w",
                    "workerToken": "z",
                    "heartbeatIntervalMs": self.interval,
                    "heartbeatTimeoutMs": 600_000,
                },
                {},
            )
        if request.path.endswith("/claim"):
            first = not [r for r in self.web_server.requests if r.path.endswith("/claim")][1:]
            if first:
                answer_body["tasks"] = [
                    {"taskId": "a", "attempt": 1, "taskToken": "y", "type": "t", "cancelGracePeriodMs": 1}
                ]
            else:
                time.sleep(0.05)
        return 200, answer_body, {}

    def beats(self, path: str) -> List[ReceivedRequest]:
        return [r for r in self.web_server.requests if r.path == path]

    def until(self, what: str, holds: Callable[[], Any], seconds: float = 60) -> None:
        with self.changed:
            end = time.monotonic() + seconds
            while not holds():
                self.assertLess(time.monotonic(), end, f"not within {seconds:g} s: {what}")
                self.changed.wait(0.05)

    def run_program(self, task_timeout: float) -> "subprocess.Popen[str]":
        env = {**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(HERE), "src")}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, self.web_server.url, str(task_timeout)],
            env=env,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None and process.stdin is not None
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.until("the handler is at work", lambda: self.listing("a"))
        return process

    def listing(self, task: str) -> List[ReceivedRequest]:
        return [
            r for r in self.beats("/v1/workers/w/heartbeat") if task in [t["taskId"] for t in r.json().get("tasks", [])]
        ]

    def ends_at_a_signal(self, process: "subprocess.Popen[str]", log: str) -> None:
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), -signal.SIGKILL)
        last = [request.path for request in self.web_server.requests[-2:]]  # a heartbeat may have been in flight
        self.assertIn("/v1/workers/w/deregister", last)
        assert process.stderr is not None
        self.assertRegex(process.stderr.read(), log)

    def test_a_task_whose_handler_holds_the_gil_fails_when_its_time_is_over(self) -> None:
        process = self.run_program(0.3)
        self.until("it is completed", lambda: self.beats("/v1/tasks/a/completed"))
        listed = len(self.listing("a"))
        self.more("/v1/workers/w/heartbeat", "the worker beats on")
        self.assertEqual(len(self.listing("a")), listed)
        bodies = self.beats("/v1/tasks/a/completed")[0].json()
        self.assertEqual(
            (bodies["outcome"], bodies["error"]["category"], bodies["workerId"]), ("FAILED", "TIMEOUT", "w")
        )
        self.ends_at_a_signal(process, "Task a, attempt 1, failed: .* it will not be retried")
        self.assertEqual(len(self.beats("/v1/tasks/a/completed")), 1)

    def test_its_end_is_reported_when_it_no_longer_holds_the_gil(self) -> None:
        process = self.run_program(0.3)
        assert process.stdin is not None and process.stderr is not None
        next(line for line in process.stderr if "Task a, attempt 1, failed" in line)
        self.over = True
        process.stdin.write("x")
        process.stdin.flush()
        line = next(line for line in process.stderr if line.startswith("ended:"))
        self.assertRegex(line, r"ended: FAILED False \d")
        process.terminate()
        self.assertEqual(process.wait(60), 0)

    def test_a_process_whose_handler_holds_the_gil_ends_at_the_hard_stop(self) -> None:
        process = self.run_program(0)
        self.more("/v1/workers/w/heartbeat", "it beats on")
        self.ends_at_a_signal(process, "killing it; tasks returned to the queue: a\n")
        self.assertEqual(self.beats("/v1/tasks/a/completed"), [])

    def with_details(self) -> List[ReceivedRequest]:
        """The heartbeats that include the checkpoint."""
        return [r for r in self.web_server.requests if b'"details":{"frame":7}' in r.body]

    def test_its_unsent_checkpoint_comes_before_the_completion(self) -> None:
        self.refusing = True
        process = self.run_program(0.3)
        self.until("it is completed", lambda: self.beats("/v1/tasks/a/completed"))
        paths = [r.path for r in self.web_server.requests]
        self.assertEqual(self.with_details()[-1].path, "/v1/tasks/a/heartbeat")
        self.assertLess(paths.index("/v1/tasks/a/heartbeat"), paths.index("/v1/tasks/a/completed"))
        self.ends_at_a_signal(process, "Task a, attempt 1, failed")

    def test_the_workers_token_sends_both_if_the_tasks_has_expired(self) -> None:
        self.refusing = True
        process = self.run_program(0.3)
        self.expired = True
        self.until("it is completed", lambda: self.beats("/v1/tasks/a/completed")[1:])
        for path in ("/v1/tasks/a/heartbeat", "/v1/tasks/a/completed"):
            tokens = [r.headers["authorization"] for r in self.beats(path)]
            self.assertEqual(tokens, ["Bearer y", "Bearer z"])
        self.ends_at_a_signal(process, "Task a, attempt 1, failed: .* it will not be retried")

    def test_its_unsent_checkpoint_comes_before_the_deregistration_at_the_hard_stop(self) -> None:
        self.refusing = True
        process = self.run_program(0)
        self.until("heartbeats no longer have an inventory", lambda: self.beats_without_inventory())
        self.refusing, before = False, len(self.with_details())
        self.ends_at_a_signal(process, "killing it; tasks returned to the queue: a\n")
        self.assertEqual([r.path for r in self.with_details()[before:]], ["/v1/tasks/a/heartbeat"])

    def beats_without_inventory(self) -> List[ReceivedRequest]:
        return [r for r in self.beats("/v1/workers/w/heartbeat") if "tasks" not in r.json()]

    def test_a_stopping_worker_has_its_child_send_unsent_checkpoints(self) -> None:
        self.interval = 60_000  # no heartbeat but the last one
        with lubdub.Client(self.web_server.url, token="x") as client:
            worker = lubdub.Worker("q", client=client, isolated=True, soft_stop=0.1, hard_stop=20)

            @worker.handler("t")
            def handle(task: Task) -> None:  # pyright: ignore[reportUnusedFunction]
                worker.close()
                try:
                    task.wait(60)
                finally:
                    task.checkpoint({"frame": 7})

            with self.assertRaises(lubdub.Unfinished):
                worker.run(signals=False)
        self.assertEqual([r.path for r in self.with_details()], ["/v1/tasks/a/heartbeat"])
        self.assertEqual(self.with_details()[0].headers["authorization"], "Bearer z")
        last = [r.path.rsplit("/", 1)[1] for r in self.web_server.requests[-2:]]
        self.assertEqual(last, ["heartbeat", "deregister"])

    def test_progress_and_checkpoints_reach_the_child_and_the_next_one(self) -> None:
        with lubdub.Client(self.web_server.url, isolated=True) as client, self.assertLogs("lubdub", "ERROR"):
            attempt = client.track(envelope()).start()
            attempt.progress(5, "é", now=True)
            attempt.checkpoint({"frame": 7})
            self.until("it is sent", self.with_details)
            self.more("/v1/heartbeats", "it beats")
            self.assertEqual(len(self.with_details()), 1)
            child = child_of(client).child
            assert child is not None
            os.kill(child.pid, signal.SIGSTOP)
            attempt.checkpoint({"frame": 7})
            child.kill()
            self.until("the next child sends it", lambda: len(self.with_details()) > 1)
            self.more("/v1/heartbeats", "it beats")
            sent = len(self.web_server.requests)
            attempt.done()
            self.assertEqual([r.path for r in self.web_server.requests[sent:]][-1:], ["/v1/tasks/t/completed"])
        self.assertEqual(len(self.with_details()), 2)
        self.assertEqual(
            [r for r in self.web_server.requests if b'"progressPct":5,' in r.body][0].json()["heartbeats"][0][
                "message"
            ],
            "é",
        )

    def more(self, path: str, what: str) -> None:
        count = len(self.beats(path))
        self.until(what, lambda: len(self.beats(path)) >= count + 3)

    def test_a_killed_child_is_replaced_and_heartbeats_continue(self) -> None:
        with lubdub.Client(self.web_server.url, isolated=True) as client, self.assertLogs("lubdub", "ERROR") as logs:
            attempt = client.track(envelope()).start()
            self.more("/v1/heartbeats", "it beats")
            beats = child_of(client)
            for _ in range(2):
                first = beats.child
                assert first is not None
                first.kill()
                self.until("there is another one", lambda first=first: beats.child not in (None, first))
                self.more("/v1/heartbeats", "it beats on")
            child = beats.child
            assert child is not None
            child.kill()
            attempt.progress(50)
            self.assertEqual(attempt.done()["finalState"], "SUCCEEDED")  # whether or not the next child has started
        self.assertIn("exited with -9; starting a new one", "\n".join(logs.output))
        self.assertEqual(len(self.beats("/v1/tasks/t/completed")), 1)

    def test_a_completion_does_not_wait_for_a_child_that_is_stopped(self) -> None:
        self.addCleanup(setattr, _isolated, "GRACE", _isolated.GRACE)
        _isolated.GRACE = 0.2
        with lubdub.Client(self.web_server.url, isolated=True, timeout=1) as client, self.assertLogs(
            "lubdub", "ERROR"
        ) as logs:
            attempt = client.track(envelope()).start()
            self.more("/v1/heartbeats", "it beats")
            child = child_of(client).child
            assert child is not None
            os.kill(child.pid, signal.SIGSTOP)
            self.assertEqual(attempt.done()["finalState"], "SUCCEEDED")
            self.assertIsNotNone(child.wait(60))
        self.assertIn("has not answered within", "\n".join(logs.output))

    def test_a_child_that_cannot_be_started_is_an_error_and_is_retried(self) -> None:
        executable = sys.executable
        self.addCleanup(setattr, sys, "executable", executable)
        with lubdub.Client(self.web_server.url, isolated=True) as client, self.assertLogs("lubdub", "ERROR"):
            sys.executable = "/nonexistent"
            with self.assertRaisesRegex(lubdub.LubdubError, "could not be started"):
                client.track(envelope()).start()
            sys.executable = executable
            attempt = client.track(envelope()).start()
            beats = child_of(client)
            first = beats.child
            assert first is not None
            sys.executable = "/nonexistent"
            first.kill()
            self.until("it is tried again", lambda: beats.deaths >= 3)
            sys.executable = executable
            self.more("/v1/heartbeats", "it beats on")
            attempt.done()

    def test_the_replacement_of_a_killed_child_continues_its_numbers_and_inventory(self) -> None:
        path = "/v1/workers/w/heartbeat"
        ends: List[lubdub.AttemptEnd] = []
        metrics: Any = lubdub.Metrics()
        metrics.ended = ends.append
        client = lubdub.Client(self.web_server.url, token="x", metrics=metrics)
        worker = lubdub.Worker("q", client=client, isolated=True, soft_stop=30, hard_stop=40)
        proceed = threading.Event()
        worker.handle("t", lambda task: proceed.wait(60))
        running = threading.Thread(target=lambda: worker.run(signals=False))
        with self.assertLogs("lubdub", "ERROR"):
            running.start()
            self.until("it beats", lambda: [r for r in self.beats(path) if r.json().get("tasks")])
            runner: Any = vars(worker)["_runner"]
            for _ in range(3):
                first = runner.beats.child
                first.kill()
                self.until("there is another one", lambda first=first: runner.beats.child not in (None, first))
                self.more(path, "it beats on")
            proceed.set()
            self.until("it is counted", lambda: sum(r.json()["completedDelta"] for r in self.beats(path)) > 0)
            worker.close()
            running.join(60)
        self.assertFalse(running.is_alive())
        client.close()
        self.assertEqual([end.outcome for end in ends], ["SUCCEEDED"])
        assert ends[0].first_heartbeat is not None
        self.assertTrue(0 < ends[0].first_heartbeat < ends[0].duration, ends[0])
        bodies = [r.json() for r in self.beats(path)]
        begun = next(n for n, answer_body in enumerate(bodies) if answer_body.get("tasks"))
        ended = next(n for n, answer_body in enumerate(bodies) if answer_body["completedDelta"])
        for answer_body in bodies[begun : ended - 1]:
            self.assertEqual([t["taskId"] for t in answer_body.get("tasks", [{"taskId": "a"}])], ["a"])
        numbers = [answer_body["seq"] for answer_body in bodies]
        self.assertEqual(numbers, sorted(numbers))
        counted = {answer_body["seq"]: answer_body["completedDelta"] for answer_body in bodies}
        self.assertEqual(sum(counted.values()), 1)


class Messages(TestCase):
    def test_an_urgent_report_that_overtakes_another_stays(self) -> None:
        client = lubdub.Client("http://127.0.0.1:1")
        self.addCleanup(client.close)
        beats = Batch(client.caller, client.caller.endpoints, Listener())
        outbox = Outbox(io.BytesIO(), "test")
        self.addCleanup(outbox.close)
        entry = beats.entries["t/1"] = BeatEntry("t", 1)
        for report in (Report(2, 5, None, 1, "7"), Report(0, None, None, 1, "7")):
            message = {"do": "report", "key": "t/1", "report": list(report), "now": False}
            handle_message(beats, outbox, message)
            self.assertEqual(entry.report, Report(2, 5, None, 1, "7"))


def envelope() -> Dict[str, Any]:
    """The envelope of a tracked task."""
    return {
        "taskId": "t",
        "attempt": 1,
        "taskToken": "x",
        "heartbeatIntervalMs": INTERVAL,
        "heartbeatTimeoutMs": 60_000,
    }


def child_of(client: lubdub.Client) -> IsolatedBatch:
    """The client's heartbeat process."""
    groups: Any = vars(client)["_groups"]
    found: IsolatedBatch = next(iter(groups.values())).beats
    return found
