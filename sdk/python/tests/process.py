"""A process for tests against a real server: python process.py <what> [seconds]. It prints a line when a handler has started."""

import ctypes
import json
import sys
import time
from typing import Any

import lubdub
from lubdub.task import Task


def begun(task: Task) -> None:
    """Prints the task's id."""
    print(task.task_id, flush=True)


def spin(seconds: float) -> None:
    """Uses a core, in Python code."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def hold_the_gil(seconds: float) -> None:
    """Sleeps in C without releasing the GIL, as some extensions do."""
    sleep: Any = ctypes.PyDLL(None).usleep
    sleep(int(seconds * 1e6))


def main() -> None:
    """Does what the arguments name; a worker's queue has the same name."""
    what, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    if what == "track":
        with lubdub.Client(isolated=True) as client, client.track(json.loads(sys.stdin.readline())) as task:
            begun(task)
            hold_the_gil(seconds)
        return
    worker = lubdub.Worker(what, isolated=what in ("gil", "stopped-isolated"), concurrency=4, soft_stop=1, hard_stop=2)

    @worker.handler("t")
    def handle(task: Task) -> Any:  # pyright: ignore[reportUnusedFunction]
        begun(task)
        if what == "spin":
            spin(seconds)
        elif what in ("gil", "gil-unaided"):
            hold_the_gil(seconds)
        elif task.attempt == 1 and what not in ("quick", "results"):
            task.wait(60)
        return {"pid": worker.registration()["pid"], "attempt": task.attempt}

    worker.run()


if __name__ == "__main__":
    main()
