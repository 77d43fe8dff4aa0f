"""Tests against a real server and a real Redis: `make test-python` builds bin/lubdub first."""

import base64
import concurrent.futures
import datetime
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from typing import Any, Callable, Dict, List, Optional

import lubdub
from lubdub import errors

from .helpers import HERE, REPOSITORY, TestCase

LUBDUB = os.path.join(REPOSITORY, "bin", "lubdub")
REDIS = os.environ.get("LUBDUB_TEST_REDIS_SERVER", "redis-server")
LIFE = 6  # seconds; the workers' heartbeat timeout: long enough that a busy machine delays no heartbeat for that long
BUSY = 2.2 * LIFE


PATIENCE = 180  # seconds; longer than anything here takes on any machine, reached only when something is broken


def free_port() -> int:
    """A port without a listener, below the range that systems use for outgoing connections."""
    while True:
        port = random.randrange(21_000, 31_000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def await_(what: str, holds: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Polls a condition, since the time is the server's."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:g} s: {what}")


class Deployment:
    """A redis-server and a `lubdub serve`."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="lubdub-python-")
        self.processes: List["subprocess.Popen[bytes]"] = []
        redis, port, admin = free_port(), free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.env = {**os.environ, "LUBDUB_SIGNING_KEYS": "k1=" + base64.b64encode(os.urandom(32)).decode()}
        self.start(
            [REDIS, "--port", str(redis), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder], "redis.log"
        )
        await_("Redis answers", lambda: self.listens(redis))
        self.start(
            [
                LUBDUB,
                "serve",
                "--redis",
                f"redis://127.0.0.1:{redis}/0",
                "--listen",
                f"127.0.0.1:{port}",
                "--admin-listen",
                f"127.0.0.1:{admin}",
                "--worker-heartbeat-interval",
                f"{LIFE // 3}s",
                "--shards",
                "2",
                "--redis-timeout",
                "10s",
            ],
            "lubdub.log",
        )
        try:
            await_("the server is ready", self.ready)
        except AssertionError:
            with open(os.path.join(self.folder, "lubdub.log"), encoding="utf-8") as log:
                raise AssertionError(log.read()) from None

    def listens(self, port: int) -> bool:
        """Whether a process listens on a port."""
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def ready(self) -> bool:
        """Whether the server is ready."""
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=5) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def start(self, command: List[str], log: str) -> None:
        """Starts a process that ends with the tests."""
        with open(os.path.join(self.folder, log), "wb") as out:
            self.processes.append(subprocess.Popen(command, env=self.env, stdout=out, stderr=subprocess.STDOUT))

    def token(self, role: str) -> str:
        """A control token."""
        return subprocess.run(
            [LUBDUB, "token", "--role", role], env=self.env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()

    def close(self) -> None:
        """Stops all processes."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


deployment: Optional[Deployment] = None


def setUpModule() -> None:
    global deployment
    assert os.path.exists(LUBDUB), f"{LUBDUB} is not there: `make build` makes it"
    deployment = Deployment()


def tearDownModule() -> None:
    if deployment is not None:
        deployment.close()


class Real(TestCase):
    def setUp(self) -> None:
        super().setUp()
        assert deployment is not None
        self.deployment = deployment
        self.client = lubdub.Client(deployment.url, token=deployment.token("admin"))
        self.addCleanup(self.client.close)

    def run_process(self, *what: str) -> "subprocess.Popen[str]":
        """Starts tests/process.py."""
        return self.process(os.path.join(HERE, "process.py"), *what)

    def process(self, *program: str) -> "subprocess.Popen[str]":
        """Starts a program with the deployment in its environment."""
        source = os.path.join(os.path.dirname(HERE), "src")
        env = {
            **os.environ,
            "LUBDUB_URL": self.deployment.url,
            "LUBDUB_TOKEN": self.deployment.token("enroll"),
            "PYTHONPATH": source,
        }
        process = subprocess.Popen(
            [sys.executable, *program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process: "subprocess.Popen[str]") -> None:
        """Ends a process, even if it is stopped."""
        process.kill()
        process.communicate()

    def next_line(self, process: "subprocess.Popen[str]") -> str:
        """The next line of a process's output."""
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def enqueue(self, queue: str, **fields: Any) -> str:
        """Creates a task for tests/process.py."""
        more: Any = {"retry": {"initialBackoffMs": 100}, **fields}
        return self.client.enqueue(queue, "t", more=more)["taskId"]

    def ended(self, task_id: str) -> Dict[str, Any]:
        """A task after its end."""

        def look() -> Optional[Dict[str, Any]]:
            task: Any = self.client.get_task(task_id)
            return task if task["state"] in ("SUCCEEDED", "FAILED", "CANCELLED") else None

        found: Dict[str, Any] = await_(f"task {task_id} ends", look)
        return found


class Work(Real):
    def test_two_hundred_tasks_and_their_events(self) -> None:
        run = "run_two_hundred"
        with self.client.events(type=["task.succeeded"], run_id=run, after="now") as stream:
            tasks = [lubdub.NewTask("quick", "t", n, more={"runId": run}) for n in range(200)]
            created = [task for task, _ in self.client.enqueue_many(tasks) if task]
            run_process = self.run_process("quick")
            subjects = {next(stream).get("subject") for _ in range(200)}
        self.assertEqual(subjects, {task["taskId"] for task in created})
        self.assertEqual(
            len({task["taskId"] for task in self.client.iter_tasks(run_id=run, state=["SUCCEEDED"], page_size=70)}), 200
        )
        worker = next(w for w in self.client.iter_workers(queue="quick"))
        await_("they are counted", lambda: self.client.get_worker(worker["workerId"])["totalCompleted"] == 200)
        run_process.send_signal(signal.SIGTERM)
        self.assertEqual(run_process.wait(PATIENCE), 0)
        self.assertEqual(self.client.get_worker(worker["workerId"])["status"], "OFFLINE")

    def test_the_results_of_fifty_tasks(self) -> None:
        def result(task_id: str) -> Any:
            return self.client.result(task_id, PATIENCE)

        tasks = [self.client.enqueue("results", "t", n)["taskId"] for n in range(50)]
        with concurrent.futures.ThreadPoolExecutor(len(tasks)) as pool:
            results = pool.map(result, tasks)
            process = self.run_process("results")
            self.assertEqual(list(results), [{"pid": process.pid, "attempt": 1}] * len(tasks))
        cancelled = self.enqueue("nowhere")
        self.assertRaises(TimeoutError, self.client.result, cancelled, 0.1)
        self.client.cancel_task(cancelled, {"reason": "enough"})
        with self.assertRaises(lubdub.TaskFailed) as caught:
            result(cancelled)
        self.assertEqual(str(caught.exception), f"task {cancelled} CANCELLED: enough")
        self.assertEqual(caught.exception.task["cancelReason"], "enough")
        self.assertRaises(errors.TaskNotFound, result, "none")

    def test_busy_workers_live_and_dead_ones_are_detected(self) -> None:
        names = ["spin", "gil", "killed", "stopped", "stopped-isolated"]
        tasks = {name: self.enqueue(name) for name in names}
        processes = {name: self.run_process(name, str(BUSY)) for name in names}
        tracked: Any = self.client.dispatch(
            {"heartbeatIntervalMs": LIFE * 1000 // 3, "heartbeatTimeoutMs": LIFE * 1000}
        )
        tracking = self.run_process("track", str(BUSY))
        assert tracking.stdin is not None
        tracking.stdin.write(json.dumps(tracked) + "\n")
        tracking.stdin.flush()
        for name in names:
            self.assertEqual(self.next_line(processes[name]), tasks[name])
        processes["killed"].send_signal(signal.SIGKILL)
        others = {name: self.run_process(name) for name in ("killed", "stopped", "stopped-isolated")}
        for name in ("stopped", "stopped-isolated"):
            processes[name].send_signal(signal.SIGSTOP)
        for name in ("spin", "gil"):
            task = self.ended(tasks[name])
            self.assertEqual((task["state"], task["attempt"]), ("SUCCEEDED", 1), name)
        task = self.ended(tracked["taskId"])
        self.assertEqual((task["state"], task["attempt"]), ("SUCCEEDED", 1))
        for name, other in others.items():
            task = self.ended(tasks[name])
            self.assertEqual(
                (task["state"], task["attempt"], task["output"]),
                ("SUCCEEDED", 2, {"pid": other.pid, "attempt": 2}),
                name,
            )
            self.assertEqual(task["history"][0]["reason"], "WORKER_LOST")
        # it wakes up, is refused because it is too late, and registers again
        for name in ("stopped", "stopped-isolated"):
            processes[name].send_signal(signal.SIGCONT)
            await_("it has come back", lambda: len(list(self.client.iter_workers(queue=name, status="ONLINE"))) == 2)

    def test_the_examples(self) -> None:
        examples = os.path.join(os.path.dirname(HERE), "examples")
        mail = self.client.enqueue("default", "send_email", {"to": "a@example.com"})["taskId"]
        nowhere = self.client.enqueue("default", "send_email", {})["taskId"]
        number = self.client.enqueue("default", "count", 41)["taskId"]
        worker = self.process(os.path.join(examples, "worker.py"))
        self.assertEqual(self.ended(mail)["output"], {"sent": "a@example.com"})
        self.assertEqual(self.ended(nowhere)["error"]["category"], "DATA_QUALITY")
        self.assertEqual(self.ended(number)["output"], 42)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(PATIENCE), 0)
        envelopes = [self.client.dispatch({}) for _ in range(2)]
        self.process(os.path.join(examples, "tracked.py")).communicate(
            "".join(json.dumps(e) + "\n" for e in envelopes), PATIENCE
        )
        self.assertEqual([self.ended(e["taskId"])["output"] for e in envelopes], [{"rows": 5}] * 2)

    def test_a_scheduled_task_is_snoozed_retried_and_cancelled_by_its_handler(self) -> None:
        worker = lubdub.Worker("scheduled", client=self.client)

        @worker.handler("t")
        def handle(task: lubdub.Task) -> Any:  # pyright: ignore[reportUnusedFunction]
            if task.attempt == 1:
                raise lubdub.Snooze(0.2)
            if task.attempt == 2:
                raise lubdub.RetryAfter(0.2, ValueError("busy"))
            raise lubdub.Cancelled("no longer needed")

        running = threading.Thread(target=lambda: worker.run(signals=False))
        running.start()
        self.addCleanup(running.join)
        self.addCleanup(worker.kill)
        due = datetime.datetime.now() + datetime.timedelta(days=1)
        later = [self.client.enqueue("scheduled", "t", delay=60), self.client.enqueue("scheduled", "t", run_at=due)]
        listed = {task["taskId"] for task in self.client.iter_tasks(queue="scheduled", state=["SCHEDULED"])}
        self.assertEqual(listed, {task["taskId"] for task in later})
        policy: Any = {"retry": {"maxAttempts": 2, "initialBackoffMs": 600_000, "maxBackoffMs": 600_000}}
        task = self.ended(self.client.enqueue("scheduled", "t", delay=0.2, more=policy)["taskId"])
        self.assertEqual((task["state"], task["attempt"]), ("CANCELLED", 3))
        self.assertEqual(task["error"], {**task["error"], "category": "CANCELLED", "message": "no longer needed"})
        self.assertEqual([one["outcome"] for one in task["history"]], ["SNOOZED", "FAILED", "CANCELLED"])
        envelope: Any = self.client.dispatch({})
        self.assertRaises(errors.TaskWithoutQueue, self.client.track(envelope).start().fail, lubdub.Snooze(1))

    def test_a_cancel_and_a_failure(self) -> None:
        envelope = self.client.dispatch({})
        with self.assertRaises(lubdub.Cancelled):
            with self.client.track(envelope) as task:
                task.progress(40, "half", now=True)
                self.client.cancel_task(task.task_id, {"reason": "enough"})
                task.progress(41, "half", now=True)
                task.wait(60)
        self.assertEqual(self.ended(envelope["taskId"])["state"], "CANCELLED")
        attempt = self.client.run(self.client.dispatch({}), lambda task: 1 // 0)
        error = self.ended(attempt.task_id)["error"]
        self.assertEqual(error["category"], "USER_CODE")
        self.assertIn("ZeroDivisionError", error["stackTrace"])

    def test_every_read_is_answered(self) -> None:
        client = self.client
        for call in (
            client.healthz,
            client.livez,
            client.readyz,
            client.version,
            client.list_machines,
            client.list_queues,
            client.list_schedules,
            client.get_stats,
            client.count_verdicts,
            client.get_system,
            client.list_tasks,
            client.list_webhooks,
            client.list_workers,
            client.list_events,
            client.sweep,
        ):
            self.assertIsInstance(call(), dict, call.__name__)
        self.assertLessEqual(len(client.get_stats(steps=1)["series"]["steps"]), 1)
        self.assertRaises(errors.InvalidRequest, lambda: client.get_stats(steps=0))
        self.assertRaises(errors.TaskNotFound, lambda: client.get_task("none"))
        self.assertRaises(errors.InvalidId, lambda: client.get_task("_"))
        schedule = client.create_schedule({"cron": "0 0 0 1 1 * 2099", "task": {"queue": "never", "type": "t"}})
        self.assertEqual(client.pause_schedule(schedule["scheduleId"])["scheduleId"], schedule["scheduleId"])
        client.delete_schedule(schedule["scheduleId"])
        with lubdub.Client(self.deployment.url, token=self.deployment.token("enroll")) as enroll:
            self.assertRaises(errors.Forbidden, enroll.get_system)
