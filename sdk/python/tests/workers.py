"""Tests with a worker and a fake server."""

from typing import Any, Callable, List, Optional

import lubdub
from lubdub.task import Task
from lubdub.testing import Request, Server

from .helpers import TestCase


class WorkerCase(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.__exit__)
        self.ended: List[Optional[BaseException]] = []
        self.workers: List[lubdub.Worker] = []
        self.addCleanup(self.end)

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()

    def quiet(self) -> None:
        """Ends the workers before the next test captures its log."""
        self.end()
        self.server.until("they end", lambda: len(self.ended) == len(self.workers))

    def start(self, handler: Optional[Callable[[Task], Any]] = None, **options: Any) -> lubdub.Worker:
        worker = lubdub.Worker("default", client=self.server.client(**options.pop("client", {})), **options)
        worker.handle("t", handler or (lambda task: task.payload))
        return self.run_worker(worker)

    def run_worker(self, worker: lubdub.Worker) -> lubdub.Worker:
        def run() -> None:
            try:
                worker.run(signals=False)
                self.ended.append(None)
            except BaseException as error:
                self.ended.append(error)

        self.workers.append(worker)
        self.server.hand.spawn(run, "test-worker")
        return worker

    def done(self, task_id: str) -> Any:
        task = self.server.task(task_id)
        self.server.until("the task ends", lambda: task.over)
        return task

    def stop(self, worker: lubdub.Worker) -> Optional[BaseException]:
        worker.close()
        self.server.until("the worker ends", lambda: self.ended)
        return self.ended[0]

    def beats(self) -> List[Request]:
        return self.server.seen("/v1/workers/*/heartbeat".replace("*", self.server.worker().id))
