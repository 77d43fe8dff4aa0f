"""Runs the commands of the conformance harness with the Python SDK; sdk/conformance/README.md describes them."""

import json
import os
import sys
import threading
import time
from typing import Any, Dict, List, Optional

import lubdub
from lubdub.task import Task


class Runner:
    """One run of the process."""

    def __init__(self, order: Dict[str, Any]) -> None:
        self.order = order
        self.lock = threading.Lock()
        self.gates: Dict[str, threading.Event] = {}
        self.workers: List[lubdub.Worker] = []
        self.closing = False

    def emit(self, event: str, **fields: Any) -> None:
        """Writes an event."""
        line = json.dumps({"event": event, **{k: v for k, v in fields.items() if v is not None}})
        with self.lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def gate(self, name: str) -> threading.Event:
        """A gate."""
        with self.lock:
            return self.gates.setdefault(name, threading.Event())

    def read_commands(self) -> None:
        """Handles further commands until the harness closes the input."""
        for line in sys.stdin:
            deed = json.loads(line)
            if deed.get("do") == "release":
                self.gate(deed["gate"]).set()
            elif deed.get("do") == "close":
                self.closing = True
                for worker in self.workers:
                    worker.close()
        os._exit(2)

    def run(self) -> int:
        """Runs the case and returns the exit code."""
        unfinished: List[str] = []
        code = 0
        order = self.order
        try:
            opener: Dict[str, Any] = (
                {"token_file": order["tokenFile"]} if order.get("tokenFile") else {"token": order.get("token")}
            )
            lease = order.get("lease") or "patient"
            with lubdub.Client(order["urls"], lease=lease, ca_file=order.get("caFile"), **opener) as client:
                if order["mode"] == "track":
                    self.track_all(client)
                elif order["mode"] == "create":
                    self.create(client)
                else:
                    ends = self.work_all(client)
                    unfinished = sorted(
                        task for end in ends if isinstance(end, lubdub.Unfinished) for task in end.task_ids
                    )
                    code = 1 if unfinished else 0
                    for end in ends:
                        if end is not None and not isinstance(end, lubdub.Unfinished):
                            raise end
        except Exception as error:
            self.emit("error", message=f"{type(error).__name__}: {error}")
            code = 1
        self.emit("exit", unfinished=unfinished)
        return code

    def create(self, client: lubdub.Client) -> None:
        """Creates all tasks with one call."""
        creations: List[Any] = self.order["creations"]
        given = sum("idempotencyKey" in one for one in creations)
        results: List[Dict[str, Any]] = [dict(one) for one in client.create_tasks({"tasks": creations})["results"]]
        drawn = sum("idempotencyKey" in one for one in creations) - given
        self.emit("created", tasks=[one["taskId"] if one["status"] // 100 == 2 else "" for one in results], drawn=drawn)

    def work_all(self, client: lubdub.Client) -> List[Optional[Exception]]:
        """Runs all workers, the first in the main thread, which gets the signals; returns how each ended."""
        ends: List[Optional[Exception]] = []

        def run(worker: lubdub.Worker) -> None:
            try:
                worker.run()
                ends.append(None)
            except Exception as error:
                ends.append(error)

        self.workers = [self.make(client) for _ in range(self.order.get("workers") or 1)]
        if self.closing:
            for worker in self.workers:
                worker.close()
        threads = [threading.Thread(target=run, args=(worker,)) for worker in self.workers[1:]]
        for thread in threads:
            thread.start()
        run(self.workers[0])
        for thread in threads:
            thread.join()
        return ends

    def make(self, client: lubdub.Client) -> lubdub.Worker:
        """Creates a worker."""
        order = self.order
        options: Dict[str, Any] = {}
        names = {
            "softStopMs": "soft_stop",
            "hardStopMs": "hard_stop",
            "taskTimeoutMs": "task_timeout",
            "watchdogMs": "watchdog",
        }
        for result, name in names.items():
            if order.get(result) is not None:
                options[name] = order[result] / 1000
        if order.get("default"):
            options["default"] = self.handle
        worker = lubdub.Worker(
            order["queue"],
            client=client,
            types=order["types"],
            name=order["name"],
            concurrency=order["concurrency"],
            **options,
        )
        for type in order["types"]:
            worker.handle(type, self.handle)
        return worker

    def handle(self, task: Task) -> Any:
        """The handler of all types."""
        names: Dict[str, Any] = {"task": task.task_id, "attempt": task.attempt}
        state = State()
        before = {"lastProgress": task.last_progress, "checkpoint": task.last_checkpoint}
        self.emit("begun", traceparent=task.traceparent or None, **before, **names)

        def ended(cause: lubdub.End) -> None:
            with state.lock:
                if not state.over:
                    self.emit("ended", reason=reason_of(cause), detail=getattr(cause, "reason", None), **names)
            state.ended.set()

        task.on_end(ended)
        handlers: Dict[str, List[Dict[str, Any]]] = self.order.get("handlers") or {}
        none: List[Dict[str, Any]] = []
        steps = next(
            (
                handlers[name]
                for name in (f"{task.task_id}/{task.attempt}", task.task_id, f"type:{task.envelope.get('type')}")
                if name in handlers
            ),
            none,
        )
        try:
            return self.do(task, steps, state, names)
        finally:
            with state.lock:
                state.over = True
            self.emit("returned", **names)

    def do(self, task: Task, steps: List[Dict[str, Any]], state: "State", names: Dict[str, Any]) -> Any:
        """Runs steps until one ends the handler."""
        for step in steps:
            ((name, value),) = step.items()
            if name == "progress":
                task.progress(*value)
            elif name == "checkpoint":
                task.checkpoint(value)
            elif name == "gate":
                self.gate(value).wait()
            elif name == "untilEnded":
                state.ended.wait()
            elif name == "sleep":
                if state.ended.wait(value / 1000):
                    task.check()
            elif name == "spin":
                end = time.monotonic() + value / 1000
                while time.monotonic() < end:
                    pass
            elif name == "work":
                self.work_in_steps(task, value / 1000, names)
            elif name == "say":
                self.emit("said", what=value, **names)
            elif name == "return":
                return value
            elif name == "returnBig":
                return "x" * value
            elif name == "returnNotJSON":
                return object()
            elif name == "fail":
                if "category" not in value:
                    raise ValueError(value["message"])
                after = value["retryAfterMs"] / 1000 if "retryAfterMs" in value else None
                raise lubdub.Failure(value["message"], value["category"], value.get("retryable"), after)
            elif name == "snooze":
                raise lubdub.Snooze(value / 1000)
            elif name == "cancelled":
                raise lubdub.Cancelled(value)
            elif name == "panic":
                raise RuntimeError(value)
            elif name == "stopped":
                raise lubdub.Stopped(value["phase"], value["partial"])
            elif name == "giveUp":
                task.check()
            else:
                raise AssertionError(f"there is no step {name!r}")
        return None

    def work_in_steps(self, task: Task, seconds: float, names: Dict[str, Any]) -> None:
        """Works in short pieces, and before each checks whether it may continue; reports the first and the last one."""
        noted: List[int] = []
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                now = int(time.time() * 1000)
                task.check()
                noted = [*noted[:1], now]
                time.sleep(0.01)
        finally:
            self.emit("worked", **({"from": noted[0], "until": noted[-1]} if noted else {}), **names)

    def track_all(self, client: lubdub.Client) -> None:
        """Tracks all envelopes concurrently."""
        threads = [threading.Thread(target=self.track, args=(client, e)) for e in self.order["envelopes"]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def track(self, client: lubdub.Client, envelope: Dict[str, Any]) -> None:
        """Tracks one."""
        names: Dict[str, Any] = {"task": envelope["taskId"], "attempt": envelope["attempt"]}
        try:
            attempt = client.track(envelope).start()
        except lubdub.LubdubError as error:
            self.emit("refused", reason=reason_of(error), **names)
            return
        try:
            output, failure = self.handle(attempt), None
        except Exception as error:
            output, failure = None, error
        try:
            result = self.settle(attempt, output, failure)
        except lubdub.LubdubError as error:
            result = {"failure": reason_of(error)}
            attempt.abandon()
        self.emit("settled", **result, **names)

    def settle(self, attempt: Task, output: Any, failure: Optional[Exception]) -> Dict[str, Any]:
        """Completes the attempt; returns the fields of the settled line."""
        wrong: Optional[str] = None
        if failure is None:
            try:
                answer = attempt.done(output)
            except lubdub.OutputError as error:
                wrong = "Output"
                answer = attempt.fail(lubdub.Failure(str(error), retryable=False))
        else:
            answer = attempt.fail(failure)
        return {
            "finalState": answer["finalState"],
            "willRetry": bool(answer.get("willRetry")),
            "nextAttempt": answer.get("nextAttempt"),
            "failure": wrong,
        }


class State:
    """The state of a handler."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.ended = threading.Event()
        self.over = False


def reason_of(error: BaseException) -> str:
    """The name of the reason."""
    if isinstance(error, lubdub.End):
        return type(error).__name__
    return "Output" if isinstance(error, lubdub.OutputError) else "Refused"


def main() -> int:
    """Runs the case in the first line."""
    order = json.loads(sys.stdin.readline())
    if order.get("break"):
        print("this runner injects no faults", file=sys.stderr)
        return 2
    runner = Runner(order)
    threading.Thread(target=runner.read_commands, daemon=True).start()
    return runner.run()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # even if handlers are still running
