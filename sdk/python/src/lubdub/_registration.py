"""A worker's registration, and the next one after its session was lost."""

from __future__ import annotations

import uuid
from typing import Any, Mapping

from ._answers import interval_of, plain, timeout_of
from ._clock import backoff
from ._workerbeats import Session
from ._workerstate import WorkerState
from .task import LEAST_TIMEOUT
from .errors import AnswerError, ForcedOffline, LubdubError, forced_offline, may_retry, wait_of

CRASH_COUNT = 3  # registrations within a minute that do not count as a crash loop


class RegisteredWorker(WorkerState):
    """Registers the worker, and registers it again when its session is lost."""

    def register(self) -> bool:
        """Registers the worker, with retries until it is answered; False: it was stopped before."""
        body = {**self.worker.registration(), "registrationId": uuid.uuid4().hex}
        now = self.clock.now()
        self.entered = [at for at in self.entered if now - at <= 60]
        often = len(self.entered) - CRASH_COUNT
        if often >= 0 and self.stopping.wait(min(60.0, float(1 << min(often, 10)))):
            return False
        tried = 0
        while not self.stopping.is_set():
            sent = self.clock.now()
            try:
                self.enter(self.client.post("/v1/workers", body, tries=1, cancel=self.stopping), sent)
                return True
            except LubdubError as error:
                if self.stopping.is_set():
                    break
                if not may_retry(error):
                    self.outage.answered("registration")
                    raise
                self.outage.failed("registration", error)
                self.stopping.wait(wait_of(error) + backoff(tried, 30.0))
            tried += 1
        self.outage.dropped("registration")
        return False

    def enter(self, answer: Mapping[str, Any], sent: float) -> None:
        """Starts a session from the answer to a registration."""
        self.outage.answered("registration")
        worker_id, token = plain(answer.get("workerId")), plain(answer.get("workerToken"))
        if not worker_id or not token:
            raise AnswerError("POST /v1/workers: the answer has no workerId or no workerToken")
        timeout = timeout_of(answer.get("heartbeatTimeoutMs"), 0)
        interval = interval_of(answer.get("heartbeatIntervalMs"), timeout, timeout / 3 or 10.0)
        timeout = timeout or 3 * interval
        waiting = answer.get("shouldDrain") is True
        capabilities = answer.get("capabilities")
        exchange = isinstance(capabilities, list) and "exchange" in capabilities
        session = Session(worker_id, token, interval, timeout, sent, waiting, exchange)
        self.logger.info(
            "Worker registered with ID: %s (queue %s, types %s)",
            session.worker_id,
            self.worker.queue,
            self.worker.types,
        )
        if waiting:
            machine = plain(answer.get("machineId")) or self.worker.registration().get("machineId")
            self.logger.info("Machine %s is drained; waiting until it is resumed", machine)
        if timeout < LEAST_TIMEOUT:
            self.logger.warning("A heartbeat timeout of %g s leaves no room for one Retry-After", timeout)
        with self.cond:
            self.session = session
            self.entered.append(self.clock.now())
            self.cond.notify_all()
        self.beats.enter(Session(session.worker_id, session.token, interval, timeout, sent, waiting))

    def register_again(self, old: str, why: str) -> bool:
        """Registers again after a session was lost. Running tasks continue and are part of the new inventory. A refusal does not end the
        worker: a deployment that rejects tokens for a while must not end its workers."""
        with self.cond:
            while self.joining and not self.stopping.is_set():
                self.cond.wait()
            if self.stopping.is_set() or self.worker_id() != old:
                return not self.stopping.is_set()
            self.joining = True
        try:
            self.logger.warning("Worker %s is lost and registers again: %s", old, why)
            tried = 0
            while not self.stopping.is_set():
                try:
                    return self.register()
                except LubdubError as error:
                    forced = forced_offline(error, old)
                    if forced is not None:
                        self.force_offline(forced)
                        return False
                    if tried == 0:
                        self.logger.error("Registration of worker %s is refused and will be retried: %s", old, error)
                self.stopping.wait(1 + backoff(tried, 30.0))
                tried += 1
            return False
        finally:
            with self.cond:
                self.joining = False
                self.cond.notify_all()

    def gone(self, worker_id: str, text: str, forced: bool) -> None:
        if forced:
            self.force_offline(ForcedOffline(worker_id, f"lubdub worker resume {worker_id}"))
            return
        self.clock.spawn(lambda: (self.register_again(worker_id, text), None)[1], "lubdub-register")

    def resumed(self, worker_id: str) -> None:
        with self.cond:
            session = self.session
            if session is None or session.worker_id != worker_id:
                return
            session.waiting = False
            self.cond.notify_all()
        self.logger.info("The machine was resumed; worker %s claims tasks", worker_id)
