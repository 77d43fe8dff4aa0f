"""A worker's claims."""

from __future__ import annotations

import uuid
from typing import Any, Callable, Dict, List, Optional

from . import _exit
from ._answers import envelopes
from ._call import path_of
from ._clock import MAX_PAUSE, backoff
from ._tracking import guarded
from ._registration import RegisteredWorker
from ._workerbeats import gone
from .errors import LubdubError, WorkerDraining, forced_offline, may_retry, wait_of

CLAIM_WAIT = 30.0  # seconds to wait for the first task
MAX_CLAIM = 100  # tasks per claim


def keep_claiming(runner: RegisteredWorker, begin: Callable[[List[Dict[str, Any]]], None]) -> None:
    """Claims and starts tasks until the worker drains or stops."""
    try:
        idle = 0
        while True:
            places = free_places(runner)
            if places == 0:
                return
            started = runner.clock.now()
            tasks = claim(runner, places)
            if tasks is None:
                return
            if tasks:
                begin(tasks)
            waited = runner.clock.now() - started >= CLAIM_WAIT / 2
            idle = 0 if tasks or waited else idle + 1
            if idle:
                runner.stopping.wait(backoff(idle + 2, MAX_PAUSE))
    except _exit.Exiting:
        raise
    except LubdubError as error:
        runner.fatal = error
    except BaseException as error:
        runner.fatal = LubdubError(f"claiming failed: {type(error).__name__}: {error}")
        runner.logger.exception("claiming failed")
    finally:
        with runner.cond:
            runner.claiming = False
            runner.cond.notify_all()


def free_places(runner: RegisteredWorker) -> int:
    """Waits for free places; 0: stop claiming."""
    concurrency = runner.worker.concurrency

    def over() -> bool:
        return runner.draining or runner.fatal is not None or runner.stopping.is_set()

    runner.await_(lambda: over() or (runner.active < concurrency and not runner.waiting()))
    return 0 if over() else min(concurrency - runner.active, MAX_CLAIM)


def claim(runner: RegisteredWorker, places: int) -> Optional[List[Dict[str, Any]]]:
    """Claims tasks under one id, with retries until it is answered; None: stop claiming."""
    body: Dict[str, Any] = {"max": places, "waitMs": int(CLAIM_WAIT * 1000), "claimId": uuid.uuid4().hex}
    if runner.client.lease != "strict":  # which begins when the start is sent
        body["start"] = True
    if runner.worker.default is None:  # a claim without types also gets tasks that have no type
        body["types"] = list(runner.worker.types)
    path = path_of("/v1/queues/{}/claim", (runner.worker.queue,))
    try:
        return claim_as(runner, path, body)
    finally:
        runner.outage.dropped("claims")


def claim_as(runner: RegisteredWorker, path: str, body: Dict[str, Any]) -> Optional[List[Dict[str, Any]]]:
    """Sends a claim with this body."""
    tried = 0
    while not runner.no_claims.is_set():
        session = runner.session
        if session is None:
            return None
        try:
            tasks = envelopes(
                runner.client.post(path, body, token=session.token, tries=1, waits=CLAIM_WAIT, cancel=runner.no_claims)
            )
            runner.outage.answered("claims")
            guarded(runner.metrics.claimed, "ok", len(tasks))
            return tasks
        except LubdubError as error:
            if runner.no_claims.is_set():
                return None
            guarded(runner.metrics.claimed, "unanswered" if may_retry(error) else "refused", 0)
            if not may_retry(error):
                runner.outage.answered("claims")
            if isinstance(error, WorkerDraining):
                runner.drain_now()
                return None
            forced = forced_offline(error, session.worker_id)
            if forced is not None:
                runner.force_offline(forced)
                return None
            if gone(error):
                return [] if runner.register_again(session.worker_id, str(error)) else None
            if not may_retry(error):
                raise LubdubError(f"the worker's claims are refused: {error}") from error
            runner.outage.failed("claims", error)
            runner.no_claims.wait(wait_of(error) + backoff(tried, MAX_PAUSE))
        tried += 1
    return None
