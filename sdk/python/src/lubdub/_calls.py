"""All calls of the wire contract, as api/openapi.json lists them. Written by tools/generate.py; change it there."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Iterator, List, Literal, Mapping, Optional, Sequence, TypeVar, Union, cast

from . import types as t

T = TypeVar("T")


class Calls:
    """One method for each call. Client has them all."""

    def ask(
        self, method: str, path: str, *, ids: Sequence[str] = (), body: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None, token: Optional[str] = None, idempotency_key: Optional[str] = None,
        traceparent: Optional[str] = None, opened: bool = True, scoped: bool = False, once: bool = False,
        drawn: Optional[str] = None, keyed: bool = False, waits: float = 0,
    ) -> Any:
        """Makes a call and returns its answer. {} in the path are the ids, in their order."""
        raise NotImplementedError

    def index(self) -> t.Index:
        """List the paths of the API, its documents and the dashboard. A browser, which accepts text/html, is redirected to the
        dashboard."""
        return cast(t.Index, self.ask("GET", "/", opened=False))

    def healthz(self) -> t.Health:
        """Check that this server is ready, as /readyz does."""
        return cast(t.Health, self.ask("GET", "/healthz", opened=False))

    def livez(self) -> t.Health:
        """Check that the process responds. It never sends a request to Redis."""
        return cast(t.Health, self.ask("GET", "/livez", opened=False))

    def readyz(self) -> t.Health:
        """Check that this server is ready. The answer is 503 while the server shuts down. If Redis is not responding, which affects
        all servers, the status is degraded and the answer is still 200, so that a balancer does not remove all servers at once."""
        return cast(t.Health, self.ask("GET", "/readyz", opened=False))

    def list_events(
        self, *, type: Optional[List[str]] = None, subject: Optional[str] = None, run_id: Optional[str] = None, queue: Optional[str]
        = None, task_type: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, after:
        Optional[str] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> t.EventList:
        """List or stream events. A page of events of all shards, or a stream of them if Accept is text/event-stream. The cursor
        resumes both: no event is missed, and a repeated event has the same id. If events are no longer kept, a page has a gap,
        and a stream an event of that name. Pages may be short or empty if few events pass the filter: more says whether there
        may be more. Every 15 s a stream sends a sign of life with its position. It ends with an event that has the cursor from
        which to continue: lagged, if its client does not keep up, or end, with a reason: draining, token_expired or
        token_revoked. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.EventList, self.ask(
            "GET", "/v1/events", query={"type": type, "subject": subject, "runId": run_id, "queue": queue, "taskType": task_type,
            "workerId": worker_id, "machineId": machine_id, "after": after, "order": order, "pageSize": page_size}, scoped=True,
        ))

    def heartbeats(self, body: t.HeartbeatsRequest, *, token: str) -> t.HeartbeatsResponse:
        """Send many heartbeats. A request may have 1,000 items. Each item is authorized by its own taskToken, or else by the
        worker's token of the request, and has its own result, in the same order; an invalid item never fails the others.
        Statuses 401, 403, 409, 410, 429 and 503 are in the results."""
        return cast(t.HeartbeatsResponse, self.ask("POST", "/v1/heartbeats", body=body, token=token))

    def list_machines(
        self, *, status: Optional[Literal["ONLINE", "DRAINING", "OFFLINE"]] = None, order: Optional[Literal["asc", "desc"]] = None,
        page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.MachineList:
        """List machines. Machines are in the order of their ids. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.MachineList, self.ask(
            "GET", "/v1/machines", query={"status": status, "order": order, "pageSize": page_size, "pageToken": page_token},
            scoped=True,
        ))

    def iter_machines(
        self, *, status: Optional[Literal["ONLINE", "DRAINING", "OFFLINE"]] = None, order: Optional[Literal["asc", "desc"]] = None,
        page_size: Optional[int] = None,
    ) -> Iterator[t.Machine]:
        """Goes through all entries of list_machines, page by page."""
        token: Optional[str] = None
        while True:
            page = self.list_machines(status=status, order=order, page_size=page_size, page_token=token)
            yield from page["machines"]
            token = page.get("nextPageToken")
            if not token:
                return

    def get_machine(self, machine_id: str) -> t.Machine:
        """Read a machine. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Machine, self.ask("GET", "/v1/machines/{}", ids=(machine_id,), scoped=True))

    def drain_machine(self, machine_id: str, body: Optional[t.DrainRequest] = None) -> t.DrainWorkersResponse:
        """Drain a machine. Each of its workers drains as with its own call. Until the machine is resumed, a worker that registers
        on it is DRAINING from the start: its heartbeats get shouldDrain, its claims are rejected with 409, and it stays so even
        if it is idle. A repeated call may set another deadline and reason. Roles: operator, dispatcher, admin."""
        return cast(t.DrainWorkersResponse, self.ask(
            "POST", "/v1/machines/{}/drain", ids=(machine_id,), body=body or {}, scoped=True,
        ))

    def offline_machine(self, machine_id: str, body: Optional[t.ReasonRequest] = None) -> t.ActOnWorkersResponse:
        """Take a machine offline until it is resumed. Its workers are OFFLINE at once with FORCED_OFFLINE, and the tasks that they
        hold are lost and retried. Until the machine is resumed, registrations on it are rejected with 409 worker_held_offline.
        The hold ends 30 days after the last record of a worker on the machine was deleted. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask(
            "POST", "/v1/machines/{}/offline", ids=(machine_id,), body=body or {}, scoped=True,
        ))

    def resume_machine(self, machine_id: str, body: Optional[t.ReasonRequest] = None) -> t.ResumeMachineResponse:
        """Undo a machine's drain and hold. Workers may register on a machine that was held offline; workers that were taken offline
        individually stay held. Workers that drain with the machine, or that registered on it meanwhile, are ONLINE again;
        workers that were drained individually continue to drain. A machine that is not drained does not change. Roles: operator,
        dispatcher, admin."""
        return cast(t.ResumeMachineResponse, self.ask(
            "POST", "/v1/machines/{}/resume", ids=(machine_id,), body=body or {}, scoped=True,
        ))

    def list_queues(self, *, order: Optional[Literal["asc", "desc"]] = None) -> t.QueueList:
        """List queues. Queues that hold tasks, have workers or are paused, by name. unrunnable counts the tasks of a type that no
        worker can run. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.QueueList, self.ask("GET", "/v1/queues", query={"order": order}, scoped=True))

    def get_queue(self, queue: str) -> t.Queue:
        """Read a queue. The answer is 404 if the queue has no waiting or running tasks and no workers, and is not paused. Roles:
        viewer, operator, dispatcher, admin."""
        return cast(t.Queue, self.ask("GET", "/v1/queues/{}", ids=(queue,), scoped=True))

    def claim_tasks(self, queue: str, body: Optional[t.ClaimRequest] = None, *, token: str) -> t.ClaimResponse:
        """Claim tasks. The answer has tasks of the queue, oldest first and fair across types, that the worker can run: the type,
        runtime and worker labels match, and the task is not pinned to another worker. The request waits until there is a task,
        or until waitMs is over and the answer is empty; a full worker waits too. The same claimId gets the same tasks while the
        worker holds them. With start, the tasks are RUNNING in the answer, as if the worker had reported their starts. A claim
        counts as a heartbeat of the worker when it arrives; notices for the worker, such as cancellations, are in the answers to
        its heartbeats only."""
        return cast(t.ClaimResponse, self.ask(
            "POST", "/v1/queues/{}/claim", ids=(queue,), body=body or {}, token=token, scoped=True, drawn="claimId",
            waits=float((body or {}).get("waitMs") or 0) / 1000,
        ))

    def pause_queue(self, queue: str, body: Optional[t.PauseQueueRequest] = None) -> t.Queue:
        """Pause a queue. New tasks are accepted, and workers continue with the tasks that they hold. A workspace may have 1,000
        paused queues; one more gets 429. Roles: operator, dispatcher, admin."""
        return cast(t.Queue, self.ask("POST", "/v1/queues/{}/pause", ids=(queue,), body=body or {}, scoped=True))

    def resume_queue(self, queue: str) -> t.Queue:
        """Resume a queue. Waiting claims continue. For a queue that is not paused or does not exist, the answer is the same. Roles:
        operator, dispatcher, admin."""
        return cast(t.Queue, self.ask("POST", "/v1/queues/{}/resume", ids=(queue,), body={}, scoped=True))

    def get_run(self, run_id: str) -> t.Run:
        """Count a run's tasks. Roles: viewer, submitter, operator, dispatcher, admin."""
        return cast(t.Run, self.ask("GET", "/v1/runs/{}", ids=(run_id,), scoped=True))

    def cancel_run(self, run_id: str, body: Optional[t.CancelRequest] = None) -> t.Run:
        """Request the cancellation of all tasks of a run. Roles: submitter, operator, dispatcher, admin."""
        return cast(t.Run, self.ask("POST", "/v1/runs/{}/cancel", ids=(run_id,), body=body or {}, scoped=True))

    def list_schedules(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.ScheduleList:
        """List schedules. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.ScheduleList, self.ask(
            "GET", "/v1/schedules", query={"order": order, "pageSize": page_size, "pageToken": page_token}, scoped=True,
        ))

    def iter_schedules(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> Iterator[t.Schedule]:
        """Goes through all entries of list_schedules, page by page."""
        token: Optional[str] = None
        while True:
            page = self.list_schedules(order=order, page_size=page_size, page_token=token)
            yield from page["schedules"]
            token = page.get("nextPageToken")
            if not token:
                return

    def create_schedule(self, body: t.CreateScheduleRequest) -> t.Schedule:
        """Create a schedule. Each fire creates its task once, no matter how many servers run and when they die: its idempotency key
        is schedule:<id>:<time>, its taskId begins with fire_, and both are reserved. A tenant may have 10,000 schedules; one
        more gets 429. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("POST", "/v1/schedules", body=body, scoped=True, once=True))

    def delete_schedule(self, schedule_id: str) -> t.DeletedSchedule:
        """Delete a schedule. Its tasks stay. Roles: operator, dispatcher, admin."""
        return cast(t.DeletedSchedule, self.ask("DELETE", "/v1/schedules/{}", ids=(schedule_id,), scoped=True))

    def get_schedule(self, schedule_id: str) -> t.Schedule:
        """Read a schedule. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("GET", "/v1/schedules/{}", ids=(schedule_id,), scoped=True))

    def change_schedule(self, schedule_id: str, body: Optional[t.ChangeScheduleRequest] = None) -> t.Schedule:
        """Change a schedule's definition. Absent fields do not change. The schedule continues as when its definition is replaced.
        Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("PATCH", "/v1/schedules/{}", ids=(schedule_id,), body=body or {}, scoped=True))

    def replace_schedule(self, schedule_id: str, body: Optional[t.ChangeScheduleRequest] = None) -> t.Schedule:
        """Replace a schedule's definition. cron and task are required, and absent fields get their defaults. The schedule continues
        from its last fire: missed times since then are caught up, up to maxCatchup of them. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("PUT", "/v1/schedules/{}", ids=(schedule_id,), body=body or {}, scoped=True))

    def backfill_schedule(self, schedule_id: str, body: t.BackfillRequest) -> t.AskedFires:
        """Fire a schedule for a time in the past. It fires for each scheduled time after from, up to and including to: the newest
        maxCatchup of them. Times that have already fired keep their task. Roles: operator, dispatcher, admin."""
        return cast(t.AskedFires, self.ask("POST", "/v1/schedules/{}/backfill", ids=(schedule_id,), body=body, scoped=True))

    def fire_schedule(self, schedule_id: str) -> t.FiredResponse:
        """Fire a schedule once, now. It fires even if it is paused or its earlier tasks still run. The fire has the time of the
        current second: two calls within one second fire once. Roles: operator, dispatcher, admin."""
        return cast(t.FiredResponse, self.ask("POST", "/v1/schedules/{}/fire", ids=(schedule_id,), body={}, scoped=True, once=True))

    def next_fires(self, schedule_id: str, *, count: Optional[int] = None, cron: Optional[str] = None) -> t.NextFires:
        """List a schedule's next fires. With cron, those that a schedule with this id would have from now on. It need not exist,
        and does not change. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.NextFires, self.ask(
            "GET", "/v1/schedules/{}/next", ids=(schedule_id,), query={"count": count, "cron": cron}, scoped=True,
        ))

    def pause_schedule(self, schedule_id: str) -> t.Schedule:
        """Pause a schedule. Fires that are pending still create their tasks. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("POST", "/v1/schedules/{}/pause", ids=(schedule_id,), body={}, scoped=True))

    def resume_schedule(self, schedule_id: str) -> t.Schedule:
        """Resume a schedule. Missed fires are caught up, up to maxCatchup of them. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("POST", "/v1/schedules/{}/resume", ids=(schedule_id,), body={}, scoped=True))

    def list_scopes(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.ScopeList:
        """List tenants and workspaces in use. Scopes that have tasks or workers, in the order of their names, for tokens whose
        workspace is *: those of one tenant if the request names one. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.ScopeList, self.ask(
            "GET", "/v1/scopes", query={"order": order, "pageSize": page_size, "pageToken": page_token}, scoped=True,
        ))

    def iter_scopes(self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None) -> Iterator[t.Scope]:
        """Goes through all entries of list_scopes, page by page."""
        token: Optional[str] = None
        while True:
            page = self.list_scopes(order=order, page_size=page_size, page_token=token)
            yield from page["scopes"]
            token = page.get("nextPageToken")
            if not token:
                return

    def get_stats(self, *, steps: Optional[int] = None) -> t.Stats:
        """Count tasks and workers, with rates. Levels are those of the scope: a token for all tenants need not name a tenant, and
        may name one without a workspace. Rates, the last hour and the series are of the whole deployment, counted by its
        replicas every ten seconds; a dead replica is omitted. The levels of the series are shown to a token for all tenants, and
        to the only workspace in a deployment. beatGapRatio is the one of /metrics, of all replicas together. All values are at
        most a second old. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Stats, self.ask("GET", "/v1/stats", query={"steps": steps}, scoped=True))

    def count_verdicts(
        self, *, by: Optional[List[str]] = None, since_ms: Optional[int] = None, reason: Optional[Literal["HEARTBEAT_TIMEOUT",
        "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST", "WORKER_REPORTED", "TERMINATED"]] =
        None, queue: Optional[str] = None, type: Optional[str] = None,
    ) -> t.VerdictCounts:
        """Count the attempts that Lubdub ended. Verdicts of the last sinceMs, grouped. They are kept as long as their tasks may be
        (finished-retention). The answer may be a second old, or ten seconds if there are very many. By a label, which is read
        from the tasks, the newest 10,000 verdicts are counted. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.VerdictCounts, self.ask(
            "GET", "/v1/stats/verdicts", query={"by": by, "sinceMs": since_ms, "reason": reason, "queue": queue, "type": type},
            scoped=True,
        ))

    def get_system(self) -> t.System:
        """Read the state of the deployment. Replicas, shards, Redis servers, brake and reconciler of the whole deployment, at most
        a second old. A Redis server that does not respond has an error and no other field. Summary and findings are those that
        the CLI and the dashboard show: about Lubdub itself, and about the workers and queues of the scope; about queues only if
        the scope is one workspace. A finding that is not ok has a remedy. Codes name what was checked and do not change;
        messages are for people, and do. While no Redis server responds, the answer is a 503 within 3 seconds, which has summary
        and findings too. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.System, self.ask("GET", "/v1/system", scoped=True))

    def release_brake(self, body: Optional[t.ReleaseRequest] = None) -> t.ReleaseResponse:
        """Release the mass-expiry brake. For operators who know that the workers that fell silent together are dead: all that the
        brake holds in this tenant and workspace expires now, and the brake holds nothing there for a while. A task or worker
        whose heartbeats arrive meanwhile stays alive. If the brake holds nothing, nothing changes. Roles: operator, dispatcher,
        admin."""
        return cast(t.ReleaseResponse, self.ask("POST", "/v1/system:release", body=body or {}, scoped=True))

    def sweep(self) -> t.SweepResponse:
        """Sweep now. Sweeps all shards once, in addition to the sweepers' own sweeps. The counts are of all tenants; machines are
        named in the token's scope only. Roles: admin."""
        return cast(t.SweepResponse, self.ask("POST", "/v1/system:sweep", body={}, scoped=True))

    def list_tasks(
        self, *, state: Optional[List[Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]]]
        = None, run_id: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, schedule_id:
        Optional[str] = None, queue: Optional[str] = None, type: Optional[str] = None, label: Optional[List[str]] = None, liveness:
        Optional[Literal["FRESH", "LATE", "LOST"]] = None, claimable: Optional[bool] = None, reason:
        Optional[Literal["HEARTBEAT_TIMEOUT", "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST",
        "WORKER_REPORTED", "TERMINATED"]] = None, finished_after: Optional[str] = None, finished_before: Optional[str] = None,
        order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.TaskList:
        """List tasks. Tasks are in the order of their ids, or with finishedAfter or finishedBefore in the order of their ends.
        totalCount is exact for state and runId, and without a filter, else null; other filters work within bounded pages. A page
        may be short, also if tasks are large: continue while there is a nextPageToken. Roles: viewer, submitter, operator,
        dispatcher, admin."""
        return cast(t.TaskList, self.ask(
            "GET", "/v1/tasks", query={"state": state, "runId": run_id, "workerId": worker_id, "machineId": machine_id,
            "scheduleId": schedule_id, "queue": queue, "type": type, "label": label, "liveness": liveness, "claimable": claimable,
            "reason": reason, "finishedAfter": finished_after, "finishedBefore": finished_before, "order": order, "pageSize":
            page_size, "pageToken": page_token}, scoped=True,
        ))

    def iter_tasks(
        self, *, state: Optional[List[Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]]]
        = None, run_id: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, schedule_id:
        Optional[str] = None, queue: Optional[str] = None, type: Optional[str] = None, label: Optional[List[str]] = None, liveness:
        Optional[Literal["FRESH", "LATE", "LOST"]] = None, claimable: Optional[bool] = None, reason:
        Optional[Literal["HEARTBEAT_TIMEOUT", "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST",
        "WORKER_REPORTED", "TERMINATED"]] = None, finished_after: Optional[str] = None, finished_before: Optional[str] = None,
        order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> Iterator[t.Task]:
        """Goes through all entries of list_tasks, page by page."""
        token: Optional[str] = None
        while True:
            page = self.list_tasks(
                state=state, run_id=run_id, worker_id=worker_id, machine_id=machine_id, schedule_id=schedule_id, queue=queue,
                type=type, label=label, liveness=liveness, claimable=claimable, reason=reason, finished_after=finished_after,
                finished_before=finished_before, order=order, page_size=page_size, page_token=token,
            )
            yield from page["tasks"]
            token = page.get("nextPageToken")
            if not token:
                return

    def create_task(
        self, body: Optional[t.CreateTaskRequest] = None, *, idempotency_key: Optional[str] = None, traceparent: Optional[str] =
        None,
    ) -> Union[t.TaskEnvelope, t.Task]:
        """Create a task. Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, which the caller
        delivers to a worker. With a queue the task waits, QUEUED, or SCHEDULED until its runAt or for its delayMs. Roles:
        submitter, dispatcher, admin."""
        return cast("Union[t.TaskEnvelope, t.Task]", self.ask(
            "POST", "/v1/tasks", body=body or {}, idempotency_key=idempotency_key, traceparent=traceparent, scoped=True, keyed=True,
        ))

    def get_task(self, task_id: str, *, wait_ms: Optional[int] = None) -> t.Task:
        """Read a task. With waitMs, the answer is sent when the task has ended (SUCCEEDED, FAILED or CANCELLED), or with its
        current state when waitMs has passed. POST /v1/tasks:wait waits for many tasks. Roles: viewer, submitter, operator,
        dispatcher, admin."""
        return cast(t.Task, self.ask(
            "GET", "/v1/tasks/{}", ids=(task_id,), query={"waitMs": wait_ms}, scoped=True, waits=(wait_ms or 0) / 1000,
        ))

    def next_attempt(self, task_id: str, body: t.NextAttemptRequest) -> Union[t.TaskEnvelope, t.Task]:
        """Create a task's next attempt. For a FAILED, DISPATCHED or RUNNING task; the old attempt is fenced at once. The same
        fromAttempt gets the same answer. The answer is 201 with the envelope, or 202 with the task if it waits in its queue, or
        if the caller is an operator, whose role does not include the tokens of attempts: a dispatcher receives the envelope by
        sending the same request. Roles: operator, dispatcher, admin."""
        return cast("Union[t.TaskEnvelope, t.Task]", self.ask(
            "POST", "/v1/tasks/{}/attempts", ids=(task_id,), body=body, scoped=True,
        ))

    def cancel_task(self, task_id: str, body: Optional[t.CancelRequest] = None) -> t.Task:
        """Request a task's cancellation. Cancellation is cooperative: the next heartbeat reports it to the worker, whose grace
        period begins then. A task that has not started is CANCELLED at once, and so is any task with a gracePeriodMs of 0: its
        worker's requests are then rejected as those of an expired attempt. Roles: submitter, operator, dispatcher, admin."""
        return cast(t.Task, self.ask("POST", "/v1/tasks/{}/cancel", ids=(task_id,), body=body or {}, scoped=True))

    def completed(self, task_id: str, body: t.CompletedRequest, *, token: str) -> t.CompletedResponse:
        """Report the result of an attempt. A repeated completion gets the same answer. A late one changes nothing."""
        return cast(t.CompletedResponse, self.ask("POST", "/v1/tasks/{}/completed", ids=(task_id,), body=body, token=token))

    def heartbeat(self, task_id: str, body: t.HeartbeatRequest, *, token: str) -> t.HeartbeatResponse:
        """Send a task's heartbeat. A 200 means that the heartbeat is stored in Redis. Stop gracefully when shouldCancel is true,
        and at once on 409 or 410. In the last third of its token's life the attempt gets a new token."""
        return cast(t.HeartbeatResponse, self.ask("POST", "/v1/tasks/{}/heartbeat", ids=(task_id,), body=body, token=token))

    def started(self, task_id: str, body: t.StartedRequest, *, token: str) -> t.StartedResponse:
        """Report that the worker has started. A repeated request for the running attempt gets the same answer. A heartbeat or a
        completion before it starts the attempt too."""
        return cast(t.StartedResponse, self.ask("POST", "/v1/tasks/{}/started", ids=(task_id,), body=body, token=token))

    def create_tasks(self, body: t.CreateTasksRequest, *, traceparent: Optional[str] = None) -> t.CreateTasksResponse:
        """Create many tasks. Each task has its own result, in the same order: the status and body that a separate request would
        have got. Roles: submitter, dispatcher, admin."""
        return cast(t.CreateTasksResponse, self.ask("POST", "/v1/tasks:batch", body=body, traceparent=traceparent, scoped=True))

    def cancel_tasks(self, body: t.CancelTasksRequest) -> t.ActOnTasksResponse:
        """Cancel all tasks that match a selector. Each call examines up to 1,000 tasks, in the order of their ids: continue while
        there is a nextPageToken. Each task is cancelled as with its own call; finished tasks that match are refused. A call that
        failed, or whose answer was lost, may be repeated with its pageToken. With dryRun nothing changes, and wouldDo counts the
        matching tasks that would. Roles: submitter, operator, dispatcher, admin."""
        return cast(t.ActOnTasksResponse, self.ask("POST", "/v1/tasks:cancel", body=body, scoped=True))

    def retry_tasks(self, body: t.RetryTasksRequest) -> t.ActOnTasksResponse:
        """Retry all FAILED tasks that match a selector. Pages and repeats work as when tasks are cancelled. Each FAILED task that
        matches gets its next attempt as with its own call; others are refused, unfinished ones with task_not_failed. To get the
        envelopes of pushed tasks, request the same attempts again. A repeated call also retries tasks that have failed again
        meanwhile. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnTasksResponse, self.ask("POST", "/v1/tasks:retry", body=body, scoped=True))

    def wait_tasks(self, body: t.WaitTasksRequest) -> t.WaitTasksResponse:
        """Wait for the ends of tasks. The answer is sent as soon as one of the tasks has ended (SUCCEEDED, FAILED or CANCELLED) or
        does not exist, and has these tasks, 100 at most of up to 1,000. It is empty if waitMs, 60,000 at most, passes before.
        Repeat the request with the other ids. Roles: viewer, submitter, operator, dispatcher, admin."""
        return cast(t.WaitTasksResponse, self.ask(
            "POST", "/v1/tasks:wait", body=body, scoped=True, waits=float((body or {}).get("waitMs") or 0) / 1000,
        ))

    def create_token(self, body: Optional[t.CreateTokenRequest] = None) -> t.CreateTokenResponse:
        """Create a token with no more rights than the request's. It has the scope, queue and subject of the request's control
        token. Its role may do nothing that the request's role may not, and it expires no later. It is valid for an hour, or for
        ttlMs, 12 hours at most. A revocation of the request's token revokes it too, whenever it was created: it counts as issued
        when the request's token was. Roles: viewer, submitter, operator, dispatcher, enroll, admin."""
        return cast(t.CreateTokenResponse, self.ask("POST", "/v1/tokens", body=body or {}, scoped=True))

    def revoke_tokens(self, body: Optional[t.RevokeTokensRequest] = None) -> t.RevokeTokensResponse:
        """Revoke tokens. Tokens that were issued until now, or until issuedBefore, get 401 from this server at once and from all
        servers within 2 s; tokens that are issued later are valid. A worker whose token was revoked registers again, if its
        enroll token is valid; until then its heartbeats are rejected. A revocation is kept until all tokens that it covers have
        expired. There may be 10,000 revocations at a time, 1,000 of them of one tenant; one more gets 429. Roles: admin."""
        return cast(t.RevokeTokensResponse, self.ask("POST", "/v1/tokens:revoke", body=body or {}, scoped=True))

    def list_webhooks(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.WebhookList:
        """List webhooks. Webhooks are in the order of their ids. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.WebhookList, self.ask(
            "GET", "/v1/webhooks", query={"order": order, "pageSize": page_size, "pageToken": page_token}, scoped=True,
        ))

    def iter_webhooks(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> Iterator[t.Webhook]:
        """Goes through all entries of list_webhooks, page by page."""
        token: Optional[str] = None
        while True:
            page = self.list_webhooks(order=order, page_size=page_size, page_token=token)
            yield from page["webhooks"]
            token = page.get("nextPageToken")
            if not token:
                return

    def create_webhook(self, body: t.CreateWebhookRequest) -> t.Webhook:
        """Create a webhook. Messages are posted as Standard Webhooks 1.0 specifies, at least once each, and those about one subject
        in order while the receiver keeps up. The answer has the secret, which is never shown again. An address that is not
        public is rejected, unless webhook-allow-cidrs includes it; the address of a name is checked at each delivery, and not
        when the webhook is created. A webhook receives the events of its workspace. Events that belong to no workspace, such as
        system.outage_credited, are in the list of events for tokens of tenant *. A workspace may have 100 webhooks, a tenant
        250, and a tenant no more than are left for all others of 1,000. Roles: operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask("POST", "/v1/webhooks", body=body, scoped=True, once=True))

    def delete_webhook(self, webhook_id: str) -> t.DeleteWebhookResponse:
        """Delete a webhook. Its pending deliveries are deleted, and requests to it that are under way are stopped. Roles: operator,
        dispatcher, admin."""
        return cast(t.DeleteWebhookResponse, self.ask("DELETE", "/v1/webhooks/{}", ids=(webhook_id,), scoped=True))

    def get_webhook(self, webhook_id: str) -> t.Webhook:
        """Read a webhook. Its secret is not in the answer. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask("GET", "/v1/webhooks/{}", ids=(webhook_id,), scoped=True))

    def update_webhook(self, webhook_id: str, body: t.UpdateWebhookRequest) -> t.Webhook:
        """Replace a webhook's definition. The body replaces the whole definition; the secret stays. A webhook that was disabled is
        enabled, unless enabled is false. Roles: operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask("PUT", "/v1/webhooks/{}", ids=(webhook_id,), body=body, scoped=True))

    def list_deliveries(
        self, webhook_id: str, *, status: Optional[Literal["PENDING", "DELIVERED", "DEAD"]] = None, order: Optional[Literal["asc",
        "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.WebhookDeliveryList:
        """List a webhook's deliveries. All pending deliveries, the newest 500 delivered and the newest 500 dead ones, newest first
        unless order is asc. A page may be short: continue while there is a nextPageToken. Roles: viewer, operator, dispatcher,
        admin."""
        return cast(t.WebhookDeliveryList, self.ask(
            "GET", "/v1/webhooks/{}/deliveries", ids=(webhook_id,), query={"status": status, "order": order, "pageSize": page_size,
            "pageToken": page_token}, scoped=True,
        ))

    def iter_deliveries(
        self, webhook_id: str, *, status: Optional[Literal["PENDING", "DELIVERED", "DEAD"]] = None, order: Optional[Literal["asc",
        "desc"]] = None, page_size: Optional[int] = None,
    ) -> Iterator[t.WebhookDelivery]:
        """Goes through all entries of list_deliveries, page by page."""
        token: Optional[str] = None
        while True:
            page = self.list_deliveries(webhook_id, status=status, order=order, page_size=page_size, page_token=token)
            yield from page["deliveries"]
            token = page.get("nextPageToken")
            if not token:
                return

    def redeliver(self, webhook_id: str, body: Optional[t.RedeliverRequest] = None) -> t.RedeliverResponse:
        """Send deliveries again. One delivery, or all events since a time that are still kept; these keep their webhook-id. A call
        with since may stop early: continue with its nextPageToken. Roles: operator, dispatcher, admin."""
        return cast(t.RedeliverResponse, self.ask(
            "POST", "/v1/webhooks/{}/redeliver", ids=(webhook_id,), body=body or {}, scoped=True, once=True,
        ))

    def rotate_secret(self, webhook_id: str, body: Optional[t.RotateSecretRequest] = None) -> t.Webhook:
        """Replace a webhook's secret. The answer has the new secret, which is never shown again. For 24 hours messages are also
        signed with the old one. Roles: operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask(
            "POST", "/v1/webhooks/{}/rotate-secret", ids=(webhook_id,), body=body or {}, scoped=True, once=True,
        ))

    def test_webhook(self, webhook_id: str) -> t.WebhookDelivery:
        """Send a test message to a webhook. The message has the type webhook.test. Its delivery shows the result. Roles: operator,
        dispatcher, admin."""
        return cast(t.WebhookDelivery, self.ask("POST", "/v1/webhooks/{}/test", ids=(webhook_id,), body={}, scoped=True, once=True))

    def list_workers(
        self, *, queue: Optional[str] = None, status: Optional[str] = None, type: Optional[str] = None, runtime: Optional[str] =
        None, machine_id: Optional[str] = None, name: Optional[str] = None, version: Optional[str] = None, label:
        Optional[List[str]] = None, liveness: Optional[Literal["FRESH", "LATE", "LOST"]] = None, schedulable: Optional[bool] = None,
        flapping: Optional[bool] = None, sort: Optional[Literal["lastHeartbeatAt", "staleCount24h", "uptimePct24h",
        "lastHeartbeat"]] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token:
        Optional[str] = None,
    ) -> t.WorkerList:
        """List workers. Workers are in the order of registration, or of their last heartbeats. totalCount is the total of all
        pages, with any filter. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.WorkerList, self.ask(
            "GET", "/v1/workers", query={"queue": queue, "status": status, "type": type, "runtime": runtime, "machineId":
            machine_id, "name": name, "version": version, "label": label, "liveness": liveness, "schedulable": schedulable,
            "flapping": flapping, "sort": sort, "order": order, "pageSize": page_size, "pageToken": page_token}, scoped=True,
        ))

    def iter_workers(
        self, *, queue: Optional[str] = None, status: Optional[str] = None, type: Optional[str] = None, runtime: Optional[str] =
        None, machine_id: Optional[str] = None, name: Optional[str] = None, version: Optional[str] = None, label:
        Optional[List[str]] = None, liveness: Optional[Literal["FRESH", "LATE", "LOST"]] = None, schedulable: Optional[bool] = None,
        flapping: Optional[bool] = None, sort: Optional[Literal["lastHeartbeatAt", "staleCount24h", "uptimePct24h",
        "lastHeartbeat"]] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> Iterator[t.Worker]:
        """Goes through all entries of list_workers, page by page."""
        token: Optional[str] = None
        while True:
            page = self.list_workers(
                queue=queue, status=status, type=type, runtime=runtime, machine_id=machine_id, name=name, version=version,
                label=label, liveness=liveness, schedulable=schedulable, flapping=flapping, sort=sort, order=order,
                page_size=page_size, page_token=token,
            )
            yield from page["workers"]
            token = page.get("nextPageToken")
            if not token:
                return

    def register_worker(self, body: t.RegisterWorkerRequest) -> t.RegisterWorkerResponse:
        """Register a worker. Registering counts as the first heartbeat. A registration with the same queue, machine, name, hostname
        and pid replaces the earlier one, which becomes OFFLINE with the reason SUPERSEDED and is named in superseded; processes
        that keep replacing each other cause the event worker.identity_conflict. With a registrationId or an Idempotency-Key a
        repeated request gets the first answer and replaces no worker. A token that is bound to a queue can register for that
        queue only. While an operator holds the worker's identity (queue, machine and name; without a name queue, machine,
        hostname and pid) or its machine offline, the request is rejected with 409 worker_held_offline, which names the workerId
        or machineId that is held and the remedy. On a drained machine the answer has shouldDrain. A registration may have up to
        8 KiB. Roles: enroll, admin."""
        return cast(t.RegisterWorkerResponse, self.ask("POST", "/v1/workers", body=body, scoped=True, drawn="registrationId"))

    def get_worker(self, worker_id: str) -> t.Worker:
        """Read a worker. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("GET", "/v1/workers/{}", ids=(worker_id,), scoped=True))

    def cordon_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Cordon a worker. The worker stays ONLINE, continues with what it holds and does not end when it is idle; its claims wait
        and get nothing, and selection skips it. Tasks that were placed on it and wait are placed again. Heartbeats, drains and
        resumes do not change the cordon, and a registration that replaces the worker inherits it. Cordoning a cordoned worker
        changes nothing. Roles: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/cordon", ids=(worker_id,), body=body or {}, scoped=True))

    def deregister_worker(
        self, worker_id: str, body: Optional[t.DeregisterRequest] = None, *, token: Optional[str] = None,
    ) -> t.Worker:
        """Deregister a worker. The worker is OFFLINE at once, and the tasks that it holds return to their queues without counting
        as lost. With drain it is OFFLINE when it has finished what it holds. Roles, in addition to the worker itself: operator,
        dispatcher, admin."""
        return cast(t.Worker, self.ask(
            "POST", "/v1/workers/{}/deregister", ids=(worker_id,), body=body or {}, token=token, scoped=True,
        ))

    def drain_worker(self, worker_id: str, body: Optional[t.DrainRequest] = None, *, token: Optional[str] = None) -> t.Worker:
        """Drain a worker. The worker claims no more tasks and finishes those that it holds. It is OFFLINE when it has finished them
        and has received the drain, or at the deadline, when the tasks that it still holds return to their queues. Roles, in
        addition to the worker itself: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/drain", ids=(worker_id,), body=body or {}, token=token, scoped=True))

    def exchange(self, worker_id: str, body: Optional[t.ExchangeRequest] = None, *, token: str) -> t.ExchangeResponse:
        """Send a worker's heartbeat, results and claim in one request. One request for what a worker has: with seq its heartbeat,
        with progress and inventory; completed, results of attempts that were dispatched to it; and a claim of its queue. They
        are processed in this order. If the heartbeat is refused, nothing else happens. Each completion has the result that its
        own request would have. A claim that is refused is answered with claimError. With a claim that waits, the results of the
        completions wait too. It does not wait longer than until the next heartbeat is due, and not at all if the heartbeat's
        answer has a drain, cancelTasks or lostTasks, or the body has more than 16 KiB. The same seq, completions and claimId get
        the same results and tasks again. A registration is answered with the capability exchange where the server has this. A
        body may have up to 4 MiB."""
        return cast(t.ExchangeResponse, self.ask(
            "POST", "/v1/workers/{}/exchange", ids=(worker_id,), body=body or {}, token=token, scoped=True,
        ))

    def worker_heartbeat(
        self, worker_id: str, body: Optional[t.WorkerHeartbeatRequest] = None, *, token: str,
    ) -> t.WorkerHeartbeatResponse:
        """Send a worker's heartbeat. It keeps the worker alive, and every task that the worker has claimed and that has no separate
        timeout. On 410 stop all tasks; the reason says whether to register again. In the last third of its token's life the
        worker gets a new token."""
        return cast(t.WorkerHeartbeatResponse, self.ask(
            "POST", "/v1/workers/{}/heartbeat", ids=(worker_id,), body=body or {}, token=token, scoped=True,
        ))

    def offline_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Take a worker offline until it is resumed. The worker is OFFLINE at once, and the tasks that it holds are lost, as if it
        had died; its heartbeats and claims get 410 worker_offline with the reason FORCED_OFFLINE. Registrations with its
        identity (queue, machine and name; without a name queue, machine, hostname and pid) are rejected until the worker is
        resumed, for 30 days at most. A worker that is OFFLINE already is held too, unless another has replaced it. Roles:
        operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/offline", ids=(worker_id,), body=body or {}, scoped=True))

    def resume_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Undo a drain or a hold. A draining worker is ONLINE again. A worker that is held offline stays OFFLINE, and its identity
        may be registered again. Roles: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/resume", ids=(worker_id,), body=body or {}, scoped=True))

    def uncordon_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Undo a cordon. Waiting claims of the worker can get tasks at once. Roles: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/uncordon", ids=(worker_id,), body=body or {}, scoped=True))

    def cordon_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Cordon all workers that match a selector. All conditions of the selector must match. If no worker matches, the answer is
        404. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:cordon", body=body, scoped=True))

    def drain_workers(self, body: t.DrainWorkersRequest) -> t.DrainWorkersResponse:
        """Drain all workers that match a selector. All conditions of the selector must match. If no worker matches, the answer is
        404. Roles: operator, dispatcher, admin."""
        return cast(t.DrainWorkersResponse, self.ask("POST", "/v1/workers:drain", body=body, scoped=True))

    def offline_workers(self, body: Optional[t.OfflineWorkersRequest] = None) -> t.ActOnWorkersResponse:
        """Take offline all workers that match a selector or have been silent. The workers are OFFLINE at once and held there, and
        the tasks that they hold are lost, as if the workers had died. If a repeated call finds no worker left to take offline,
        the answer is 200. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:offline", body=body or {}, scoped=True))

    def resume_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Undo the drains and holds of all workers that match a selector. All conditions of the selector must match. If no worker
        matches, the answer is 404. A drained machine stays drained. Workers that are held offline match too, and may register
        again. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:resume", body=body, scoped=True))

    def select_worker(self, body: Optional[t.SelectWorkerRequest] = None) -> t.SelectWorkerResponse:
        """Choose a worker. The workers of the queue are filtered by runtime, type, labels, status, cordon, freshness and capacity,
        in this order; rejected counts each worker at the first filter that it fails. A worker that is OFFLINE because it was
        silent counts as stale, whether or not a sweep has found it. The choice reserves nothing: to reserve, use placement when
        you create the task. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.SelectWorkerResponse, self.ask("POST", "/v1/workers:select", body=body or {}, scoped=True))

    def uncordon_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Undo the cordons of all workers that match a selector. All conditions of the selector must match. If no worker matches,
        the answer is 404. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:uncordon", body=body, scoped=True))

    def version(self) -> t.Version:
        """Read the version of the server."""
        return cast(t.Version, self.ask("GET", "/version", opened=False))


class AsyncCalls:
    """The same calls as coroutines. AsyncClient has them all."""

    @property
    def client(self) -> Calls:
        """Makes the calls."""
        raise NotImplementedError

    async def call(self, make: Callable[[], T]) -> T:
        """Makes a call in a thread."""
        raise NotImplementedError

    async def index(self) -> t.Index:
        """List the paths of the API, its documents and the dashboard. A browser, which accepts text/html, is redirected to the
        dashboard."""
        return await self.call(lambda: self.client.index())

    async def healthz(self) -> t.Health:
        """Check that this server is ready, as /readyz does."""
        return await self.call(lambda: self.client.healthz())

    async def livez(self) -> t.Health:
        """Check that the process responds. It never sends a request to Redis."""
        return await self.call(lambda: self.client.livez())

    async def readyz(self) -> t.Health:
        """Check that this server is ready. The answer is 503 while the server shuts down. If Redis is not responding, which affects
        all servers, the status is degraded and the answer is still 200, so that a balancer does not remove all servers at once."""
        return await self.call(lambda: self.client.readyz())

    async def list_events(
        self, *, type: Optional[List[str]] = None, subject: Optional[str] = None, run_id: Optional[str] = None, queue: Optional[str]
        = None, task_type: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, after:
        Optional[str] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> t.EventList:
        """List or stream events. A page of events of all shards, or a stream of them if Accept is text/event-stream. The cursor
        resumes both: no event is missed, and a repeated event has the same id. If events are no longer kept, a page has a gap,
        and a stream an event of that name. Pages may be short or empty if few events pass the filter: more says whether there
        may be more. Every 15 s a stream sends a sign of life with its position. It ends with an event that has the cursor from
        which to continue: lagged, if its client does not keep up, or end, with a reason: draining, token_expired or
        token_revoked. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.list_events(
            type=type, subject=subject, run_id=run_id, queue=queue, task_type=task_type, worker_id=worker_id, machine_id=machine_id,
            after=after, order=order, page_size=page_size,
        ))

    async def heartbeats(self, body: t.HeartbeatsRequest, *, token: str) -> t.HeartbeatsResponse:
        """Send many heartbeats. A request may have 1,000 items. Each item is authorized by its own taskToken, or else by the
        worker's token of the request, and has its own result, in the same order; an invalid item never fails the others.
        Statuses 401, 403, 409, 410, 429 and 503 are in the results."""
        return await self.call(lambda: self.client.heartbeats(body, token=token))

    async def list_machines(
        self, *, status: Optional[Literal["ONLINE", "DRAINING", "OFFLINE"]] = None, order: Optional[Literal["asc", "desc"]] = None,
        page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.MachineList:
        """List machines. Machines are in the order of their ids. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.list_machines(
            status=status, order=order, page_size=page_size, page_token=page_token,
        ))

    async def iter_machines(
        self, *, status: Optional[Literal["ONLINE", "DRAINING", "OFFLINE"]] = None, order: Optional[Literal["asc", "desc"]] = None,
        page_size: Optional[int] = None,
    ) -> AsyncIterator[t.Machine]:
        """Goes through all entries of list_machines, page by page."""
        token: Optional[str] = None
        while True:
            page = await self.list_machines(status=status, order=order, page_size=page_size, page_token=token)
            for one in page["machines"]:
                yield one
            token = page.get("nextPageToken")
            if not token:
                return

    async def get_machine(self, machine_id: str) -> t.Machine:
        """Read a machine. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_machine(machine_id))

    async def drain_machine(self, machine_id: str, body: Optional[t.DrainRequest] = None) -> t.DrainWorkersResponse:
        """Drain a machine. Each of its workers drains as with its own call. Until the machine is resumed, a worker that registers
        on it is DRAINING from the start: its heartbeats get shouldDrain, its claims are rejected with 409, and it stays so even
        if it is idle. A repeated call may set another deadline and reason. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.drain_machine(machine_id, body))

    async def offline_machine(self, machine_id: str, body: Optional[t.ReasonRequest] = None) -> t.ActOnWorkersResponse:
        """Take a machine offline until it is resumed. Its workers are OFFLINE at once with FORCED_OFFLINE, and the tasks that they
        hold are lost and retried. Until the machine is resumed, registrations on it are rejected with 409 worker_held_offline.
        The hold ends 30 days after the last record of a worker on the machine was deleted. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.offline_machine(machine_id, body))

    async def resume_machine(self, machine_id: str, body: Optional[t.ReasonRequest] = None) -> t.ResumeMachineResponse:
        """Undo a machine's drain and hold. Workers may register on a machine that was held offline; workers that were taken offline
        individually stay held. Workers that drain with the machine, or that registered on it meanwhile, are ONLINE again;
        workers that were drained individually continue to drain. A machine that is not drained does not change. Roles: operator,
        dispatcher, admin."""
        return await self.call(lambda: self.client.resume_machine(machine_id, body))

    async def list_queues(self, *, order: Optional[Literal["asc", "desc"]] = None) -> t.QueueList:
        """List queues. Queues that hold tasks, have workers or are paused, by name. unrunnable counts the tasks of a type that no
        worker can run. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.list_queues(order=order))

    async def get_queue(self, queue: str) -> t.Queue:
        """Read a queue. The answer is 404 if the queue has no waiting or running tasks and no workers, and is not paused. Roles:
        viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_queue(queue))

    async def claim_tasks(self, queue: str, body: Optional[t.ClaimRequest] = None, *, token: str) -> t.ClaimResponse:
        """Claim tasks. The answer has tasks of the queue, oldest first and fair across types, that the worker can run: the type,
        runtime and worker labels match, and the task is not pinned to another worker. The request waits until there is a task,
        or until waitMs is over and the answer is empty; a full worker waits too. The same claimId gets the same tasks while the
        worker holds them. With start, the tasks are RUNNING in the answer, as if the worker had reported their starts. A claim
        counts as a heartbeat of the worker when it arrives; notices for the worker, such as cancellations, are in the answers to
        its heartbeats only."""
        return await self.call(lambda: self.client.claim_tasks(queue, body, token=token))

    async def pause_queue(self, queue: str, body: Optional[t.PauseQueueRequest] = None) -> t.Queue:
        """Pause a queue. New tasks are accepted, and workers continue with the tasks that they hold. A workspace may have 1,000
        paused queues; one more gets 429. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.pause_queue(queue, body))

    async def resume_queue(self, queue: str) -> t.Queue:
        """Resume a queue. Waiting claims continue. For a queue that is not paused or does not exist, the answer is the same. Roles:
        operator, dispatcher, admin."""
        return await self.call(lambda: self.client.resume_queue(queue))

    async def get_run(self, run_id: str) -> t.Run:
        """Count a run's tasks. Roles: viewer, submitter, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_run(run_id))

    async def cancel_run(self, run_id: str, body: Optional[t.CancelRequest] = None) -> t.Run:
        """Request the cancellation of all tasks of a run. Roles: submitter, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.cancel_run(run_id, body))

    async def list_schedules(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.ScheduleList:
        """List schedules. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.list_schedules(order=order, page_size=page_size, page_token=page_token))

    async def iter_schedules(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> AsyncIterator[t.Schedule]:
        """Goes through all entries of list_schedules, page by page."""
        token: Optional[str] = None
        while True:
            page = await self.list_schedules(order=order, page_size=page_size, page_token=token)
            for one in page["schedules"]:
                yield one
            token = page.get("nextPageToken")
            if not token:
                return

    async def create_schedule(self, body: t.CreateScheduleRequest) -> t.Schedule:
        """Create a schedule. Each fire creates its task once, no matter how many servers run and when they die: its idempotency key
        is schedule:<id>:<time>, its taskId begins with fire_, and both are reserved. A tenant may have 10,000 schedules; one
        more gets 429. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.create_schedule(body))

    async def delete_schedule(self, schedule_id: str) -> t.DeletedSchedule:
        """Delete a schedule. Its tasks stay. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.delete_schedule(schedule_id))

    async def get_schedule(self, schedule_id: str) -> t.Schedule:
        """Read a schedule. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_schedule(schedule_id))

    async def change_schedule(self, schedule_id: str, body: Optional[t.ChangeScheduleRequest] = None) -> t.Schedule:
        """Change a schedule's definition. Absent fields do not change. The schedule continues as when its definition is replaced.
        Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.change_schedule(schedule_id, body))

    async def replace_schedule(self, schedule_id: str, body: Optional[t.ChangeScheduleRequest] = None) -> t.Schedule:
        """Replace a schedule's definition. cron and task are required, and absent fields get their defaults. The schedule continues
        from its last fire: missed times since then are caught up, up to maxCatchup of them. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.replace_schedule(schedule_id, body))

    async def backfill_schedule(self, schedule_id: str, body: t.BackfillRequest) -> t.AskedFires:
        """Fire a schedule for a time in the past. It fires for each scheduled time after from, up to and including to: the newest
        maxCatchup of them. Times that have already fired keep their task. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.backfill_schedule(schedule_id, body))

    async def fire_schedule(self, schedule_id: str) -> t.FiredResponse:
        """Fire a schedule once, now. It fires even if it is paused or its earlier tasks still run. The fire has the time of the
        current second: two calls within one second fire once. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.fire_schedule(schedule_id))

    async def next_fires(self, schedule_id: str, *, count: Optional[int] = None, cron: Optional[str] = None) -> t.NextFires:
        """List a schedule's next fires. With cron, those that a schedule with this id would have from now on. It need not exist,
        and does not change. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.next_fires(schedule_id, count=count, cron=cron))

    async def pause_schedule(self, schedule_id: str) -> t.Schedule:
        """Pause a schedule. Fires that are pending still create their tasks. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.pause_schedule(schedule_id))

    async def resume_schedule(self, schedule_id: str) -> t.Schedule:
        """Resume a schedule. Missed fires are caught up, up to maxCatchup of them. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.resume_schedule(schedule_id))

    async def list_scopes(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.ScopeList:
        """List tenants and workspaces in use. Scopes that have tasks or workers, in the order of their names, for tokens whose
        workspace is *: those of one tenant if the request names one. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.list_scopes(order=order, page_size=page_size, page_token=page_token))

    async def iter_scopes(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> AsyncIterator[t.Scope]:
        """Goes through all entries of list_scopes, page by page."""
        token: Optional[str] = None
        while True:
            page = await self.list_scopes(order=order, page_size=page_size, page_token=token)
            for one in page["scopes"]:
                yield one
            token = page.get("nextPageToken")
            if not token:
                return

    async def get_stats(self, *, steps: Optional[int] = None) -> t.Stats:
        """Count tasks and workers, with rates. Levels are those of the scope: a token for all tenants need not name a tenant, and
        may name one without a workspace. Rates, the last hour and the series are of the whole deployment, counted by its
        replicas every ten seconds; a dead replica is omitted. The levels of the series are shown to a token for all tenants, and
        to the only workspace in a deployment. beatGapRatio is the one of /metrics, of all replicas together. All values are at
        most a second old. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_stats(steps=steps))

    async def count_verdicts(
        self, *, by: Optional[List[str]] = None, since_ms: Optional[int] = None, reason: Optional[Literal["HEARTBEAT_TIMEOUT",
        "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST", "WORKER_REPORTED", "TERMINATED"]] =
        None, queue: Optional[str] = None, type: Optional[str] = None,
    ) -> t.VerdictCounts:
        """Count the attempts that Lubdub ended. Verdicts of the last sinceMs, grouped. They are kept as long as their tasks may be
        (finished-retention). The answer may be a second old, or ten seconds if there are very many. By a label, which is read
        from the tasks, the newest 10,000 verdicts are counted. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.count_verdicts(by=by, since_ms=since_ms, reason=reason, queue=queue, type=type))

    async def get_system(self) -> t.System:
        """Read the state of the deployment. Replicas, shards, Redis servers, brake and reconciler of the whole deployment, at most
        a second old. A Redis server that does not respond has an error and no other field. Summary and findings are those that
        the CLI and the dashboard show: about Lubdub itself, and about the workers and queues of the scope; about queues only if
        the scope is one workspace. A finding that is not ok has a remedy. Codes name what was checked and do not change;
        messages are for people, and do. While no Redis server responds, the answer is a 503 within 3 seconds, which has summary
        and findings too. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_system())

    async def release_brake(self, body: Optional[t.ReleaseRequest] = None) -> t.ReleaseResponse:
        """Release the mass-expiry brake. For operators who know that the workers that fell silent together are dead: all that the
        brake holds in this tenant and workspace expires now, and the brake holds nothing there for a while. A task or worker
        whose heartbeats arrive meanwhile stays alive. If the brake holds nothing, nothing changes. Roles: operator, dispatcher,
        admin."""
        return await self.call(lambda: self.client.release_brake(body))

    async def sweep(self) -> t.SweepResponse:
        """Sweep now. Sweeps all shards once, in addition to the sweepers' own sweeps. The counts are of all tenants; machines are
        named in the token's scope only. Roles: admin."""
        return await self.call(lambda: self.client.sweep())

    async def list_tasks(
        self, *, state: Optional[List[Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]]]
        = None, run_id: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, schedule_id:
        Optional[str] = None, queue: Optional[str] = None, type: Optional[str] = None, label: Optional[List[str]] = None, liveness:
        Optional[Literal["FRESH", "LATE", "LOST"]] = None, claimable: Optional[bool] = None, reason:
        Optional[Literal["HEARTBEAT_TIMEOUT", "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST",
        "WORKER_REPORTED", "TERMINATED"]] = None, finished_after: Optional[str] = None, finished_before: Optional[str] = None,
        order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.TaskList:
        """List tasks. Tasks are in the order of their ids, or with finishedAfter or finishedBefore in the order of their ends.
        totalCount is exact for state and runId, and without a filter, else null; other filters work within bounded pages. A page
        may be short, also if tasks are large: continue while there is a nextPageToken. Roles: viewer, submitter, operator,
        dispatcher, admin."""
        return await self.call(lambda: self.client.list_tasks(
            state=state, run_id=run_id, worker_id=worker_id, machine_id=machine_id, schedule_id=schedule_id, queue=queue, type=type,
            label=label, liveness=liveness, claimable=claimable, reason=reason, finished_after=finished_after,
            finished_before=finished_before, order=order, page_size=page_size, page_token=page_token,
        ))

    async def iter_tasks(
        self, *, state: Optional[List[Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]]]
        = None, run_id: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, schedule_id:
        Optional[str] = None, queue: Optional[str] = None, type: Optional[str] = None, label: Optional[List[str]] = None, liveness:
        Optional[Literal["FRESH", "LATE", "LOST"]] = None, claimable: Optional[bool] = None, reason:
        Optional[Literal["HEARTBEAT_TIMEOUT", "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST",
        "WORKER_REPORTED", "TERMINATED"]] = None, finished_after: Optional[str] = None, finished_before: Optional[str] = None,
        order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> AsyncIterator[t.Task]:
        """Goes through all entries of list_tasks, page by page."""
        token: Optional[str] = None
        while True:
            page = await self.list_tasks(
                state=state, run_id=run_id, worker_id=worker_id, machine_id=machine_id, schedule_id=schedule_id, queue=queue,
                type=type, label=label, liveness=liveness, claimable=claimable, reason=reason, finished_after=finished_after,
                finished_before=finished_before, order=order, page_size=page_size, page_token=token,
            )
            for one in page["tasks"]:
                yield one
            token = page.get("nextPageToken")
            if not token:
                return

    async def create_task(
        self, body: Optional[t.CreateTaskRequest] = None, *, idempotency_key: Optional[str] = None, traceparent: Optional[str] =
        None,
    ) -> Union[t.TaskEnvelope, t.Task]:
        """Create a task. Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, which the caller
        delivers to a worker. With a queue the task waits, QUEUED, or SCHEDULED until its runAt or for its delayMs. Roles:
        submitter, dispatcher, admin."""
        return await self.call(lambda: self.client.create_task(body, idempotency_key=idempotency_key, traceparent=traceparent))

    async def get_task(self, task_id: str, *, wait_ms: Optional[int] = None) -> t.Task:
        """Read a task. With waitMs, the answer is sent when the task has ended (SUCCEEDED, FAILED or CANCELLED), or with its
        current state when waitMs has passed. POST /v1/tasks:wait waits for many tasks. Roles: viewer, submitter, operator,
        dispatcher, admin."""
        return await self.call(lambda: self.client.get_task(task_id, wait_ms=wait_ms))

    async def next_attempt(self, task_id: str, body: t.NextAttemptRequest) -> Union[t.TaskEnvelope, t.Task]:
        """Create a task's next attempt. For a FAILED, DISPATCHED or RUNNING task; the old attempt is fenced at once. The same
        fromAttempt gets the same answer. The answer is 201 with the envelope, or 202 with the task if it waits in its queue, or
        if the caller is an operator, whose role does not include the tokens of attempts: a dispatcher receives the envelope by
        sending the same request. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.next_attempt(task_id, body))

    async def cancel_task(self, task_id: str, body: Optional[t.CancelRequest] = None) -> t.Task:
        """Request a task's cancellation. Cancellation is cooperative: the next heartbeat reports it to the worker, whose grace
        period begins then. A task that has not started is CANCELLED at once, and so is any task with a gracePeriodMs of 0: its
        worker's requests are then rejected as those of an expired attempt. Roles: submitter, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.cancel_task(task_id, body))

    async def completed(self, task_id: str, body: t.CompletedRequest, *, token: str) -> t.CompletedResponse:
        """Report the result of an attempt. A repeated completion gets the same answer. A late one changes nothing."""
        return await self.call(lambda: self.client.completed(task_id, body, token=token))

    async def heartbeat(self, task_id: str, body: t.HeartbeatRequest, *, token: str) -> t.HeartbeatResponse:
        """Send a task's heartbeat. A 200 means that the heartbeat is stored in Redis. Stop gracefully when shouldCancel is true,
        and at once on 409 or 410. In the last third of its token's life the attempt gets a new token."""
        return await self.call(lambda: self.client.heartbeat(task_id, body, token=token))

    async def started(self, task_id: str, body: t.StartedRequest, *, token: str) -> t.StartedResponse:
        """Report that the worker has started. A repeated request for the running attempt gets the same answer. A heartbeat or a
        completion before it starts the attempt too."""
        return await self.call(lambda: self.client.started(task_id, body, token=token))

    async def create_tasks(self, body: t.CreateTasksRequest, *, traceparent: Optional[str] = None) -> t.CreateTasksResponse:
        """Create many tasks. Each task has its own result, in the same order: the status and body that a separate request would
        have got. Roles: submitter, dispatcher, admin."""
        return await self.call(lambda: self.client.create_tasks(body, traceparent=traceparent))

    async def cancel_tasks(self, body: t.CancelTasksRequest) -> t.ActOnTasksResponse:
        """Cancel all tasks that match a selector. Each call examines up to 1,000 tasks, in the order of their ids: continue while
        there is a nextPageToken. Each task is cancelled as with its own call; finished tasks that match are refused. A call that
        failed, or whose answer was lost, may be repeated with its pageToken. With dryRun nothing changes, and wouldDo counts the
        matching tasks that would. Roles: submitter, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.cancel_tasks(body))

    async def retry_tasks(self, body: t.RetryTasksRequest) -> t.ActOnTasksResponse:
        """Retry all FAILED tasks that match a selector. Pages and repeats work as when tasks are cancelled. Each FAILED task that
        matches gets its next attempt as with its own call; others are refused, unfinished ones with task_not_failed. To get the
        envelopes of pushed tasks, request the same attempts again. A repeated call also retries tasks that have failed again
        meanwhile. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.retry_tasks(body))

    async def wait_tasks(self, body: t.WaitTasksRequest) -> t.WaitTasksResponse:
        """Wait for the ends of tasks. The answer is sent as soon as one of the tasks has ended (SUCCEEDED, FAILED or CANCELLED) or
        does not exist, and has these tasks, 100 at most of up to 1,000. It is empty if waitMs, 60,000 at most, passes before.
        Repeat the request with the other ids. Roles: viewer, submitter, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.wait_tasks(body))

    async def create_token(self, body: Optional[t.CreateTokenRequest] = None) -> t.CreateTokenResponse:
        """Create a token with no more rights than the request's. It has the scope, queue and subject of the request's control
        token. Its role may do nothing that the request's role may not, and it expires no later. It is valid for an hour, or for
        ttlMs, 12 hours at most. A revocation of the request's token revokes it too, whenever it was created: it counts as issued
        when the request's token was. Roles: viewer, submitter, operator, dispatcher, enroll, admin."""
        return await self.call(lambda: self.client.create_token(body))

    async def revoke_tokens(self, body: Optional[t.RevokeTokensRequest] = None) -> t.RevokeTokensResponse:
        """Revoke tokens. Tokens that were issued until now, or until issuedBefore, get 401 from this server at once and from all
        servers within 2 s; tokens that are issued later are valid. A worker whose token was revoked registers again, if its
        enroll token is valid; until then its heartbeats are rejected. A revocation is kept until all tokens that it covers have
        expired. There may be 10,000 revocations at a time, 1,000 of them of one tenant; one more gets 429. Roles: admin."""
        return await self.call(lambda: self.client.revoke_tokens(body))

    async def list_webhooks(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.WebhookList:
        """List webhooks. Webhooks are in the order of their ids. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.list_webhooks(order=order, page_size=page_size, page_token=page_token))

    async def iter_webhooks(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> AsyncIterator[t.Webhook]:
        """Goes through all entries of list_webhooks, page by page."""
        token: Optional[str] = None
        while True:
            page = await self.list_webhooks(order=order, page_size=page_size, page_token=token)
            for one in page["webhooks"]:
                yield one
            token = page.get("nextPageToken")
            if not token:
                return

    async def create_webhook(self, body: t.CreateWebhookRequest) -> t.Webhook:
        """Create a webhook. Messages are posted as Standard Webhooks 1.0 specifies, at least once each, and those about one subject
        in order while the receiver keeps up. The answer has the secret, which is never shown again. An address that is not
        public is rejected, unless webhook-allow-cidrs includes it; the address of a name is checked at each delivery, and not
        when the webhook is created. A webhook receives the events of its workspace. Events that belong to no workspace, such as
        system.outage_credited, are in the list of events for tokens of tenant *. A workspace may have 100 webhooks, a tenant
        250, and a tenant no more than are left for all others of 1,000. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.create_webhook(body))

    async def delete_webhook(self, webhook_id: str) -> t.DeleteWebhookResponse:
        """Delete a webhook. Its pending deliveries are deleted, and requests to it that are under way are stopped. Roles: operator,
        dispatcher, admin."""
        return await self.call(lambda: self.client.delete_webhook(webhook_id))

    async def get_webhook(self, webhook_id: str) -> t.Webhook:
        """Read a webhook. Its secret is not in the answer. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_webhook(webhook_id))

    async def update_webhook(self, webhook_id: str, body: t.UpdateWebhookRequest) -> t.Webhook:
        """Replace a webhook's definition. The body replaces the whole definition; the secret stays. A webhook that was disabled is
        enabled, unless enabled is false. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.update_webhook(webhook_id, body))

    async def list_deliveries(
        self, webhook_id: str, *, status: Optional[Literal["PENDING", "DELIVERED", "DEAD"]] = None, order: Optional[Literal["asc",
        "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.WebhookDeliveryList:
        """List a webhook's deliveries. All pending deliveries, the newest 500 delivered and the newest 500 dead ones, newest first
        unless order is asc. A page may be short: continue while there is a nextPageToken. Roles: viewer, operator, dispatcher,
        admin."""
        return await self.call(lambda: self.client.list_deliveries(
            webhook_id, status=status, order=order, page_size=page_size, page_token=page_token,
        ))

    async def iter_deliveries(
        self, webhook_id: str, *, status: Optional[Literal["PENDING", "DELIVERED", "DEAD"]] = None, order: Optional[Literal["asc",
        "desc"]] = None, page_size: Optional[int] = None,
    ) -> AsyncIterator[t.WebhookDelivery]:
        """Goes through all entries of list_deliveries, page by page."""
        token: Optional[str] = None
        while True:
            page = await self.list_deliveries(webhook_id, status=status, order=order, page_size=page_size, page_token=token)
            for one in page["deliveries"]:
                yield one
            token = page.get("nextPageToken")
            if not token:
                return

    async def redeliver(self, webhook_id: str, body: Optional[t.RedeliverRequest] = None) -> t.RedeliverResponse:
        """Send deliveries again. One delivery, or all events since a time that are still kept; these keep their webhook-id. A call
        with since may stop early: continue with its nextPageToken. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.redeliver(webhook_id, body))

    async def rotate_secret(self, webhook_id: str, body: Optional[t.RotateSecretRequest] = None) -> t.Webhook:
        """Replace a webhook's secret. The answer has the new secret, which is never shown again. For 24 hours messages are also
        signed with the old one. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.rotate_secret(webhook_id, body))

    async def test_webhook(self, webhook_id: str) -> t.WebhookDelivery:
        """Send a test message to a webhook. The message has the type webhook.test. Its delivery shows the result. Roles: operator,
        dispatcher, admin."""
        return await self.call(lambda: self.client.test_webhook(webhook_id))

    async def list_workers(
        self, *, queue: Optional[str] = None, status: Optional[str] = None, type: Optional[str] = None, runtime: Optional[str] =
        None, machine_id: Optional[str] = None, name: Optional[str] = None, version: Optional[str] = None, label:
        Optional[List[str]] = None, liveness: Optional[Literal["FRESH", "LATE", "LOST"]] = None, schedulable: Optional[bool] = None,
        flapping: Optional[bool] = None, sort: Optional[Literal["lastHeartbeatAt", "staleCount24h", "uptimePct24h",
        "lastHeartbeat"]] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token:
        Optional[str] = None,
    ) -> t.WorkerList:
        """List workers. Workers are in the order of registration, or of their last heartbeats. totalCount is the total of all
        pages, with any filter. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.list_workers(
            queue=queue, status=status, type=type, runtime=runtime, machine_id=machine_id, name=name, version=version, label=label,
            liveness=liveness, schedulable=schedulable, flapping=flapping, sort=sort, order=order, page_size=page_size,
            page_token=page_token,
        ))

    async def iter_workers(
        self, *, queue: Optional[str] = None, status: Optional[str] = None, type: Optional[str] = None, runtime: Optional[str] =
        None, machine_id: Optional[str] = None, name: Optional[str] = None, version: Optional[str] = None, label:
        Optional[List[str]] = None, liveness: Optional[Literal["FRESH", "LATE", "LOST"]] = None, schedulable: Optional[bool] = None,
        flapping: Optional[bool] = None, sort: Optional[Literal["lastHeartbeatAt", "staleCount24h", "uptimePct24h",
        "lastHeartbeat"]] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> AsyncIterator[t.Worker]:
        """Goes through all entries of list_workers, page by page."""
        token: Optional[str] = None
        while True:
            page = await self.list_workers(
                queue=queue, status=status, type=type, runtime=runtime, machine_id=machine_id, name=name, version=version,
                label=label, liveness=liveness, schedulable=schedulable, flapping=flapping, sort=sort, order=order,
                page_size=page_size, page_token=token,
            )
            for one in page["workers"]:
                yield one
            token = page.get("nextPageToken")
            if not token:
                return

    async def register_worker(self, body: t.RegisterWorkerRequest) -> t.RegisterWorkerResponse:
        """Register a worker. Registering counts as the first heartbeat. A registration with the same queue, machine, name, hostname
        and pid replaces the earlier one, which becomes OFFLINE with the reason SUPERSEDED and is named in superseded; processes
        that keep replacing each other cause the event worker.identity_conflict. With a registrationId or an Idempotency-Key a
        repeated request gets the first answer and replaces no worker. A token that is bound to a queue can register for that
        queue only. While an operator holds the worker's identity (queue, machine and name; without a name queue, machine,
        hostname and pid) or its machine offline, the request is rejected with 409 worker_held_offline, which names the workerId
        or machineId that is held and the remedy. On a drained machine the answer has shouldDrain. A registration may have up to
        8 KiB. Roles: enroll, admin."""
        return await self.call(lambda: self.client.register_worker(body))

    async def get_worker(self, worker_id: str) -> t.Worker:
        """Read a worker. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.get_worker(worker_id))

    async def cordon_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Cordon a worker. The worker stays ONLINE, continues with what it holds and does not end when it is idle; its claims wait
        and get nothing, and selection skips it. Tasks that were placed on it and wait are placed again. Heartbeats, drains and
        resumes do not change the cordon, and a registration that replaces the worker inherits it. Cordoning a cordoned worker
        changes nothing. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.cordon_worker(worker_id, body))

    async def deregister_worker(
        self, worker_id: str, body: Optional[t.DeregisterRequest] = None, *, token: Optional[str] = None,
    ) -> t.Worker:
        """Deregister a worker. The worker is OFFLINE at once, and the tasks that it holds return to their queues without counting
        as lost. With drain it is OFFLINE when it has finished what it holds. Roles, in addition to the worker itself: operator,
        dispatcher, admin."""
        return await self.call(lambda: self.client.deregister_worker(worker_id, body, token=token))

    async def drain_worker(self, worker_id: str, body: Optional[t.DrainRequest] = None, *, token: Optional[str] = None) -> t.Worker:
        """Drain a worker. The worker claims no more tasks and finishes those that it holds. It is OFFLINE when it has finished them
        and has received the drain, or at the deadline, when the tasks that it still holds return to their queues. Roles, in
        addition to the worker itself: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.drain_worker(worker_id, body, token=token))

    async def exchange(self, worker_id: str, body: Optional[t.ExchangeRequest] = None, *, token: str) -> t.ExchangeResponse:
        """Send a worker's heartbeat, results and claim in one request. One request for what a worker has: with seq its heartbeat,
        with progress and inventory; completed, results of attempts that were dispatched to it; and a claim of its queue. They
        are processed in this order. If the heartbeat is refused, nothing else happens. Each completion has the result that its
        own request would have. A claim that is refused is answered with claimError. With a claim that waits, the results of the
        completions wait too. It does not wait longer than until the next heartbeat is due, and not at all if the heartbeat's
        answer has a drain, cancelTasks or lostTasks, or the body has more than 16 KiB. The same seq, completions and claimId get
        the same results and tasks again. A registration is answered with the capability exchange where the server has this. A
        body may have up to 4 MiB."""
        return await self.call(lambda: self.client.exchange(worker_id, body, token=token))

    async def worker_heartbeat(
        self, worker_id: str, body: Optional[t.WorkerHeartbeatRequest] = None, *, token: str,
    ) -> t.WorkerHeartbeatResponse:
        """Send a worker's heartbeat. It keeps the worker alive, and every task that the worker has claimed and that has no separate
        timeout. On 410 stop all tasks; the reason says whether to register again. In the last third of its token's life the
        worker gets a new token."""
        return await self.call(lambda: self.client.worker_heartbeat(worker_id, body, token=token))

    async def offline_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Take a worker offline until it is resumed. The worker is OFFLINE at once, and the tasks that it holds are lost, as if it
        had died; its heartbeats and claims get 410 worker_offline with the reason FORCED_OFFLINE. Registrations with its
        identity (queue, machine and name; without a name queue, machine, hostname and pid) are rejected until the worker is
        resumed, for 30 days at most. A worker that is OFFLINE already is held too, unless another has replaced it. Roles:
        operator, dispatcher, admin."""
        return await self.call(lambda: self.client.offline_worker(worker_id, body))

    async def resume_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Undo a drain or a hold. A draining worker is ONLINE again. A worker that is held offline stays OFFLINE, and its identity
        may be registered again. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.resume_worker(worker_id, body))

    async def uncordon_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Undo a cordon. Waiting claims of the worker can get tasks at once. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.uncordon_worker(worker_id, body))

    async def cordon_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Cordon all workers that match a selector. All conditions of the selector must match. If no worker matches, the answer is
        404. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.cordon_workers(body))

    async def drain_workers(self, body: t.DrainWorkersRequest) -> t.DrainWorkersResponse:
        """Drain all workers that match a selector. All conditions of the selector must match. If no worker matches, the answer is
        404. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.drain_workers(body))

    async def offline_workers(self, body: Optional[t.OfflineWorkersRequest] = None) -> t.ActOnWorkersResponse:
        """Take offline all workers that match a selector or have been silent. The workers are OFFLINE at once and held there, and
        the tasks that they hold are lost, as if the workers had died. If a repeated call finds no worker left to take offline,
        the answer is 200. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.offline_workers(body))

    async def resume_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Undo the drains and holds of all workers that match a selector. All conditions of the selector must match. If no worker
        matches, the answer is 404. A drained machine stays drained. Workers that are held offline match too, and may register
        again. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.resume_workers(body))

    async def select_worker(self, body: Optional[t.SelectWorkerRequest] = None) -> t.SelectWorkerResponse:
        """Choose a worker. The workers of the queue are filtered by runtime, type, labels, status, cordon, freshness and capacity,
        in this order; rejected counts each worker at the first filter that it fails. A worker that is OFFLINE because it was
        silent counts as stale, whether or not a sweep has found it. The choice reserves nothing: to reserve, use placement when
        you create the task. Roles: viewer, operator, dispatcher, admin."""
        return await self.call(lambda: self.client.select_worker(body))

    async def uncordon_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Undo the cordons of all workers that match a selector. All conditions of the selector must match. If no worker matches,
        the answer is 404. Roles: operator, dispatcher, admin."""
        return await self.call(lambda: self.client.uncordon_workers(body))

    async def version(self) -> t.Version:
        """Read the version of the server."""
        return await self.call(lambda: self.client.version())
