"""Measures tracking and claiming against a real server: python tools/speed.py [seconds]. It needs bin/lubdub and redis-server."""

import json
import os
import sys
import threading
import time
from typing import Any, List

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [HERE, os.path.join(HERE, "src")]

import lubdub  # noqa: E402
from lubdub.task import Task  # noqa: E402
from tests.test_real import Deployment  # noqa: E402


class Requests(lubdub.Metrics):
    """Counts heartbeat requests."""

    def __init__(self) -> None:
        self.beats = 0

    def beat(self, result: str, attempts: int, seconds: float) -> None:
        self.beats += 1


def main() -> None:
    """Prints figures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    deployment = Deployment()
    try:
        token = deployment.token("admin")
        track(deployment.url, token, seconds)
        report_progress(deployment.url, token)
        claim(deployment.url, token)
    finally:
        deployment.close()


def track(url: str, token: str, seconds: float) -> None:
    """1,000 tracked tasks at an interval of 10 s."""
    metrics = Requests()
    with lubdub.Client(url, token=token, metrics=metrics) as client:
        tasks: List[Any] = [{"heartbeatIntervalMs": 10_000, "heartbeatTimeoutMs": 30_000}] * 1000
        envelopes = client.create_tasks({"tasks": tasks})["results"]
        attempts = [client.track(dict(e)).start() for e in envelopes]
        time.sleep(10)  # until each is part of the batch
        metrics.beats = 0
        before, began = time.process_time(), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        share = 100 * (time.process_time() - before) / took
        print(f"1,000 tracked tasks at 10 s: {share:.2f} % of a core, {metrics.beats} requests in {took:.0f} s")
        ours = [a for a in attempts if a.cause is None]
        print(f"  still ours: {len(ours)}")
        for attempt in attempts:
            attempt.abandon()


def report_progress(url: str, token: str) -> None:
    """The cost of a progress report for the handler."""
    with lubdub.Client(url, token=token) as client:
        attempt = client.track(client.dispatch({})).start()
        began = time.perf_counter()
        for number in range(100_000):
            attempt.progress(number % 100, "at work")
        print(f"a report of progress: {(time.perf_counter() - began) * 10:.2f} µs")
        attempt.done()


def claim(url: str, token: str) -> None:
    """2,000 tasks without work, claimed and completed by a worker; compared with the same calls by a plain client."""
    count = 2000
    with lubdub.Client(url, token=token) as client:
        for queue in ("sdk", "bare"):
            tasks: List[Any] = [{"queue": queue, "type": "t"}] * 1000
            for _ in range(count // 1000):
                client.create_tasks({"tasks": tasks})
        done = threading.Semaphore(0)
        worker = lubdub.Worker("sdk", client=client)

        def handle(task: Task) -> None:
            done.release()

        worker.handle("t", handle)
        before = time.process_time()
        running = threading.Thread(target=lambda: worker.run(signals=False))
        running.start()
        for _ in range(count):
            done.acquire()
        worker.close()
        running.join()
        sdk = (time.process_time() - before) / count
        before = time.process_time()
        registered = client.register_worker({"queue": "bare", "types": ["t"]})
        left = count
        while left:
            for envelope in client.claim_tasks("bare", {"max": 100}, token=registered["workerToken"])["tasks"]:
                client.started(envelope["taskId"], {"attempt": 1}, token=envelope["taskToken"])
                client.completed(
                    envelope["taskId"], {"attempt": 1, "outcome": "SUCCEEDED"}, token=envelope["taskToken"]
                )
                left -= 1
        bare = (time.process_time() - before) / count
        print(
            json.dumps(
                {
                    "a no-op task, µs of CPU": round(sdk * 1e6),
                    "the bare calls": round(bare * 1e6),
                    "ratio": round(sdk / bare, 2),
                },
                ensure_ascii=False,
            )
        )


if __name__ == "__main__":
    main()
