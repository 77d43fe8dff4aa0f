"""The rules of the test server: what becomes of its tasks and workers."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, cast

from .. import types as t
from .._answers import seconds_of
from .._clock import Clock, Event
from .._complete import stamp
from ..errors import NoAnswer
from ._records import Refused, Task, Worker, check_details


class Store:
    """All tasks and workers. One thread at a time calls its methods, or the race does not matter to tests."""

    def __init__(self, clock: Clock, interval: float, timeout: float) -> None:
        self.clock, self.interval, self.timeout = clock, interval, timeout
        self.tasks: Dict[str, Task] = {}
        self.workers: Dict[str, Worker] = {}
        self.registrations: Dict[str, Dict[str, Any]] = {}
        self.cond = clock.condition()
        self.number = 0
        self.drained = False  # for the machine of all workers

    def wake(self) -> None:
        """Wakes waiting claims and results."""
        with self.cond:
            self.cond.notify_all()

    def credit(self) -> None:
        """Excludes the time until now from all silences."""
        for task in list(self.tasks.values()):
            task.last_beat = self.clock.now()
        for worker in list(self.workers.values()):
            worker.last_beat = self.clock.now()

    def create(self, fields: Dict[str, Any]) -> Task:
        """Creates a task."""
        self.number += 1
        task = Task(str(fields.get("taskId") or f"task_{self.number:04d}"), fields)
        if task.id in self.tasks:
            raise Refused(409, "task_exists")
        task.last_beat = self.clock.now()
        if fields.get("queue"):
            at, delay = fields.get("runAt") or fields.get("notBefore"), (fields.get("delayMs") or 0) / 1000
            self.hold(task, seconds_of(at) - self.clock.wall() if at else delay, "SCHEDULED")
        self.tasks[task.id] = task
        self.wake()
        return task

    def hold(self, task: Task, delay: float, state: str) -> None:
        """Lets workers claim a task after a delay; until then it has this state."""

        def due() -> None:
            task.waits, task.state = False, "QUEUED" if task.state == "SCHEDULED" else task.state
            self.wake()

        task.ready = self.clock.wall() + max(0.0, delay)
        task.waits = delay > 0  # first, since a claim may look at the task meanwhile
        task.state = state if task.waits else "QUEUED"
        if task.waits:
            self.clock.call_later(delay, due)

    def find(self, task_id: str) -> Task:
        """A task, or 404."""
        if task_id not in self.tasks:
            raise Refused(404, "task_not_found")
        return self.tasks[task_id]

    def envelope(self, task: Task) -> t.TaskEnvelope:
        """The envelope of the current attempt."""
        f, wall = task.fields, self.clock.wall()
        queued = bool(f.get("queue"))
        envelope: Dict[str, Any] = {
            "taskId": task.id,
            "attempt": task.attempt,
            "taskToken": task.token,
            "state": "DISPATCHED",
            "tenantId": "default",
            "workspaceId": "default",
            "runId": f.get("runId", f"run_{task.id}"),
            "taskKey": f.get("taskKey"),
            "assetId": f.get("assetId"),
            "queue": f.get("queue"),
            "type": f.get("type"),
            "labels": f.get("labels", {}),
            "payload": f.get("payload"),
            "resources": f.get("resources"),
            "deadline": f.get("deadline"),
            "callbackBaseUrl": "",
            "enqueuedAt": stamp(wall),
            "tokenExpiresAt": stamp(wall + float(f.get("tokenTtlSeconds", 3600))),
            "cancelGracePeriodMs": f.get("cancelGracePeriodMs", 30000),
            "heartbeatIntervalMs": f.get("heartbeatIntervalMs", 30000),
            "heartbeatTimeoutMs": f.get("heartbeatTimeoutMs", None if queued else 90000),
        }
        if f.get("runTimeoutMs"):
            envelope["runTimeoutMs"] = f["runTimeoutMs"]
        if task.last_progress is not None or task.details is not None:
            envelope["lastProgress"] = {"progressPct": None, "message": None, **(task.last_progress or {})}
            if task.details is not None:
                envelope["lastProgress"]["details"] = task.details
        if f.get("traceparent"):
            envelope["traceparent"] = f["traceparent"]
        return cast(t.TaskEnvelope, envelope)

    def shown(self, task: Task) -> Dict[str, Any]:
        """A task as GET returns it, as far as tests need it."""
        return {
            "taskId": task.id,
            "state": task.state,
            "attempt": task.attempt,
            "output": task.output,
            "error": task.error,
            "reason": task.reason,
            "workerId": task.worker or None,
            "cancelRequested": task.cancel is not None,
            "cancelReason": task.cancel,
            **{"progressPct": task.progress.get("progressPct"), "message": task.progress.get("message")},
            **({"details": task.details} if task.details is not None else {}),
        }

    def cancel(self, task_id: str, reason: str) -> None:
        """Requests cancellation of a task."""
        task = self.find(task_id)
        if task.over:
            raise Refused(409, "task_already_terminal", state=task.state)
        task.cancel = reason
        if task.state in ("SCHEDULED", "QUEUED"):
            task.state = "CANCELLED"
            self.wake()

    def expire(self, task: Task, reason: str) -> None:
        """Ends the current attempt; one that was lost or took too long is retried as the task's policy allows."""
        delay = task.retries.after_end(reason) if task.cancel is None else None
        task.state, task.reason, task.last_progress = "FAILED", reason, dict(task.progress) or None
        if delay is not None:
            task.worker = ""
            self.hold(task, delay, "QUEUED")
        self.wake()

    def give_back(self, worker: Worker) -> None:
        """Returns the tasks of a worker that deregisters to their queues, and counts nothing. One that is to be cancelled ends."""
        worker.status = "OFFLINE"
        for task in list(self.tasks.values()):
            if task.worker == worker.id and task.state in ("RUNNING", "DISPATCHED"):
                if task.cancel is not None:
                    self.expire(task, "WORKER_LOST")
                    continue
                task.reason, task.worker, task.last_progress = "WORKER_LOST", "", dict(task.progress) or None
                self.hold(task, 0, "QUEUED")

    def supersede(self, task: Task) -> t.TaskEnvelope:
        """Starts another attempt."""
        task.last_progress, task.progress = dict(task.progress) or None, {}
        task.attempt, task.state, task.last_beat = task.attempt + 1, "DISPATCHED", self.clock.now()
        return self.envelope(task)

    def sweep(self) -> Optional[float]:
        """Ends attempts and workers that have reached their timeout. Returns when the next may reach it; None: never."""
        now, dues = self.clock.now(), cast(List[float], [])
        for worker in list(self.workers.values()):
            if worker.status == "ONLINE" and now - worker.last_beat >= self.timeout:
                worker.status = "OFFLINE"
                self.wake()
            if worker.status == "ONLINE":
                dues.append(worker.last_beat + self.timeout)
        for task in list(self.tasks.values()):
            own = task.fields.get("heartbeatTimeoutMs") or (None if task.fields.get("queue") else 90000)
            if task.state not in ("RUNNING", "DISPATCHED"):
                continue
            worker = self.workers.get(task.worker)
            if own and task.state == "RUNNING" and now - task.last_beat > own / 1000:
                self.expire(task, "HEARTBEAT_TIMEOUT")
            elif worker is not None and worker.status == "OFFLINE":
                self.expire(task, "WORKER_LOST")
            elif own and task.state == "RUNNING":
                dues.append(task.last_beat + own / 1000 + 0.001)
        return min(dues, default=None)

    # Callbacks.

    def authorized(self, task_id: str, attempt: Any, bearer: str, act: str) -> Task:
        """The task, if the token and the attempt may act on it."""
        task = self.tasks.get(task_id)
        worker = self.workers.get(bearer[7:]) if bearer.startswith("worker-") else None
        if task is None or not (bearer.startswith(f"task-{task_id}-") or worker is not None):
            raise Refused(401, "unauthorized")
        if bearer.startswith("task-") and bearer != f"task-{task_id}-{attempt}":
            raise Refused(403, "forbidden")
        if attempt < task.attempt:
            raise Refused(409, "attempt_mismatch", expectedAttempt=task.attempt, receivedAttempt=attempt)
        ended = task.over or task.state == "QUEUED"
        if ended and task.reason is not None and act == "heartbeat":
            raise Refused(410, "task_expired", reason=task.reason)
        if ended:
            raise Refused(409, "task_already_terminal", state=task.state, reason=task.reason or "")
        return task

    def callback(self, task_id: str, act: str, bearer: str, body: Dict[str, Any]) -> Dict[str, Any]:
        """started, heartbeat and completed."""
        wall = stamp(self.clock.wall())
        if act == "completed":
            done = self.tasks.get(task_id)
            if done is not None and body in done.completions:
                return done.answers[done.completions.index(body)]
        task = self.authorized(task_id, body.get("attempt"), bearer, act)
        check_details(body)
        task.last_beat = self.clock.now()
        if act == "started":
            task.state = "RUNNING"
            return {
                "acknowledged": True,
                "serverTime": wall,
                **({"shouldCancel": True, "cancelReason": task.cancel} if task.cancel is not None else {}),
            }
        if act == "heartbeat":
            return self.apply_beat(task, body)
        if act != "completed":
            raise Refused(404, "not_found")
        outcome = body["outcome"]
        if outcome == "SNOOZED" and not task.fields.get("queue"):
            raise Refused(409, "task_without_queue")
        delay: Optional[float] = None  # until the next attempt; None: the task ends
        if task.cancel is None and outcome == "SNOOZED":
            delay = body["delayMs"] / 1000
        elif task.cancel is None and outcome == "FAILED":
            delay = task.retries.after_failure(body["error"])
        again = delay is not None
        answer: Dict[str, Any] = {"acknowledged": True, "finalState": outcome, "serverTime": wall, "willRetry": again}
        task.completions.append(body)
        task.answers.append(answer)
        task.output, task.error = body.get("output"), body.get("error")
        if delay is not None:
            answer["nextAttempt"] = task.attempt + 1
            task.worker, task.last_progress = "", dict(task.progress) or None
            self.hold(task, delay, "QUEUED")
        else:
            task.state = "CANCELLED" if outcome == "SNOOZED" else outcome
        self.wake()
        return answer

    def apply_beat(self, task: Task, body: Dict[str, Any]) -> Dict[str, Any]:
        """Applies an accepted heartbeat."""
        task.last_beat = self.clock.now()
        task.beats += 1
        task.progress.update({k: body[k] for k in ("progressPct", "message") if k in body})
        task.details = task.details if body.get("details") is None else body["details"]
        answer: Dict[str, Any] = {
            "acknowledged": True,
            "shouldCancel": task.cancel is not None,
            "serverTime": stamp(self.clock.wall()),
            "nextHeartbeatMs": task.fields.get("heartbeatIntervalMs", 30000),
        }
        if task.cancel is not None:
            answer["cancelReason"] = task.cancel
        return answer

    def beat(self, item: Dict[str, Any]) -> Dict[str, Any]:
        """One heartbeat of a batch."""
        try:
            task = self.authorized(item["taskId"], item["attempt"], str(item.get("taskToken")), "heartbeat")
            check_details(item)
            return {"taskId": task.id, "status": 200, **self.apply_beat(task, item)}
        except Refused as refused:
            return {"taskId": item["taskId"], "status": refused.status, **refused.body}

    # Workers.

    def register(self, body: Dict[str, Any]) -> Dict[str, Any]:
        """Registers a worker."""
        known = self.registrations.get(str(body.get("registrationId")))
        if known is not None:
            return known
        for one in list(self.workers.values()):
            if one.forced:
                raise Refused(409, "worker_held_offline", workerId=one.id, remedy=f"lubdub worker resume {one.id}")
        self.number += 1
        worker = Worker(f"wkr_{self.number:04d}", body, self.clock.now())
        self.workers[worker.id] = worker
        answer: Dict[str, Any] = {
            "workerId": worker.id,
            "workerToken": worker.token,
            "tokenExpiresAt": stamp(self.clock.wall() + 3600),
            "heartbeatIntervalMs": int(self.interval * 1000),
            "heartbeatTimeoutMs": int(self.timeout * 1000),
        }
        if self.drained:
            worker.draining = answer["shouldDrain"] = True
        self.registrations[str(body.get("registrationId"))] = answer
        return answer

    def worker_act(self, worker_id: str, act: str, bearer: str, body: Dict[str, Any], control: str) -> Dict[str, Any]:
        """heartbeat, drain and deregister."""
        worker = self.workers.get(worker_id)
        if worker is None:
            raise Refused(404, "worker_not_found")
        if bearer not in (worker.token, control):
            raise Refused(401, "unauthorized")
        if act == "heartbeat":
            return self.worker_beat(worker, body)
        if act == "drain":
            worker.draining = True
        elif act == "deregister":
            self.give_back(worker)
        else:
            raise Refused(404, "not_found")
        self.wake()
        return {"workerId": worker.id, "status": worker.status}

    def online(self, worker: Worker) -> None:
        """Refuses a worker that is offline."""
        if worker.status == "OFFLINE":
            raise Refused(410, "worker_offline", reason="FORCED_OFFLINE" if worker.forced else "HEARTBEAT_TIMEOUT")

    def worker_beat(self, worker: Worker, body: Dict[str, Any]) -> Dict[str, Any]:
        """A worker's own heartbeat."""
        listed: List[Dict[str, Any]] = body.get("tasks") or []
        for number, item in enumerate(listed):
            check_details(item, f"tasks[{number}].details")
        self.online(worker)
        worker.last_beat = self.clock.now()
        if body.get("seq", 0) > worker.seq:
            worker.seq = body["seq"]
            worker.completed += body.get("completedDelta", 0)
            worker.failed += body.get("failedDelta", 0)
        cancels: List[Dict[str, Any]] = []
        lost: List[Dict[str, Any]] = []
        for item in listed:
            task = self.tasks.get(item["taskId"])
            name = {"taskId": item["taskId"], "attempt": item["attempt"]}
            if task is None or task.over or task.attempt != item["attempt"] or task.state == "QUEUED":
                code = (
                    "task_expired"
                    if task and task.reason
                    else "attempt_mismatch"
                    if task and not task.over
                    else "task_already_terminal"
                )
                lost.append({**name, "error": code})
                continue
            task.worker = worker.id
            self.apply_beat(task, item)
            if task.cancel is not None:
                cancels.append({**name, "reason": task.cancel})
        return {
            "accepted": True,
            "shouldDrain": worker.draining,
            "cancelTasks": cancels,
            "lostTasks": lost,
            "heartbeatIntervalMs": int(self.interval * 1000),
            "heartbeatTimeoutMs": int(self.timeout * 1000),
            "serverTime": stamp(self.clock.wall()),
        }

    def claim(self, queue: str, bearer: str, body: Dict[str, Any], limit: float, cancel: Optional[Event]) -> List[Any]:
        """Waits for tasks and returns them."""
        end = self.clock.now() + float(body.get("waitMs") or 0) / 1000
        undo = cancel.then(self.wake) if cancel is not None else lambda: None
        try:
            with self.cond:
                while True:
                    worker = self.workers.get(bearer[7:]) if bearer.startswith("worker-") else None
                    if worker is None:
                        raise Refused(401, "unauthorized")
                    if worker.cut:
                        raise NoAnswer("the worker is cut off")
                    self.online(worker)
                    if worker.draining:
                        raise Refused(409, "worker_draining")
                    worker.last_beat = self.clock.now()
                    found = worker.claims.get(str(body.get("claimId"))) or self.take(queue, worker, body)
                    left = end - self.clock.now()
                    if found or left <= 0 or (cancel is not None and cancel.is_set()):
                        return found
                    self.cond.wait(min(left, limit))
        finally:
            undo()

    def take(self, queue: str, worker: Worker, body: Dict[str, Any]) -> List[Any]:
        """Takes waiting tasks."""
        types = body.get("types") or [*worker.fields["types"], None]
        waiting = [
            x
            for x in list(self.tasks.values())
            if x.state == "QUEUED" and not x.waits and x.fields["queue"] == queue and x.fields.get("type") in types
        ]
        found: List[Any] = []
        for task in waiting[: int(body.get("max") or 1)]:
            task.attempt, task.worker, task.state = task.attempt + 1, worker.id, "DISPATCHED"
            task.reason, task.last_beat = None, self.clock.now()
            found.append(self.envelope(task))
        if found:
            worker.claims[str(body.get("claimId"))] = found
        return [{**one, "readyAt": stamp(self.tasks[one["taskId"]].ready)} for one in found]  # not if it is repeated
