"""All calls of the wire contract, as api/openapi.json lists them. Written by tools/generate.py; change it there."""

from __future__ import annotations

from typing import Any, Iterator, List, Literal, Mapping, Optional, Sequence, Union, cast

from . import types as t


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
        """Where things are. Of a browser, which asks for text/html, it is the way to /ui/, the dashboard. /docs is this document to
        be read."""
        return cast(t.Index, self.ask("GET", "/", opened=False))

    def healthz(self) -> t.Health:
        """The same as /readyz."""
        return cast(t.Health, self.ask("GET", "/healthz", opened=False))

    def livez(self) -> t.Health:
        """The process answers. Never asks the store."""
        return cast(t.Health, self.ask("GET", "/livez", opened=False))

    def readyz(self) -> t.Health:
        """This server should get work. 503 while it shuts down. The store's trouble, which is that of all servers, is told as
        status degraded: a balancer must not send nobody anywhere for it."""
        return cast(t.Health, self.ask("GET", "/readyz", opened=False))

    def list_events(
        self, *, type: Optional[List[str]] = None, subject: Optional[str] = None, run_id: Optional[str] = None, queue: Optional[str]
        = None, task_type: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, after:
        Optional[str] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None,
    ) -> t.EventList:
        """What has happened. A page of events of all shards, or, where Accept asks for text/event-stream, a stream of them. The
        cursor resumes both: nothing is missed, and what comes twice has the same id. Where events are not kept any more a page
        has a gap, and a stream an event of that name. Pages may be short, or empty, where little passes the filter: more says
        whether there may be more. A stream says every 15 s that it is alive, and where it is. It ends with an event and the
        cursor to go on from: lagged, when its client does not keep up, or end, with a reason: draining, token_expired or
        token_revoked. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.EventList, self.ask(
            "GET", "/v1/events", query={"type": type, "subject": subject, "runId": run_id, "queue": queue, "taskType": task_type,
            "workerId": worker_id, "machineId": machine_id, "after": after, "order": order, "pageSize": page_size}, scoped=True,
        ))

    def heartbeats(self, body: t.HeartbeatsRequest, *, token: str) -> t.HeartbeatsResponse:
        """Many beats at once. Each item is opened by its own taskToken, or else by the worker's token of the request, and has its
        own result, in the same order; one bad item never fails its neighbours. Statuses 401, 403, 409, 410, 429 and 503 stand in
        the results."""
        return cast(t.HeartbeatsResponse, self.ask("POST", "/v1/heartbeats", body=body, token=token))

    def list_machines(
        self, *, status: Optional[Literal["ONLINE", "DRAINING", "OFFLINE"]] = None, order: Optional[Literal["asc", "desc"]] = None,
        page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.MachineList:
        """List machines. In the order of their ids. Roles: viewer, operator, dispatcher, admin."""
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
        """One machine. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Machine, self.ask("GET", "/v1/machines/{}", ids=(machine_id,), scoped=True))

    def drain_machine(self, machine_id: str, body: Optional[t.DrainRequest] = None) -> t.DrainWorkersResponse:
        """Drain a machine. Its workers drain as by calls of their own. Until the machine is resumed a worker that registers on it
        is DRAINING from the start: its beats are told shouldDrain, its claims are refused with 409, and it stays so however idle
        it is. Again it may set another deadline and reason. Roles: operator, dispatcher, admin."""
        return cast(t.DrainWorkersResponse, self.ask(
            "POST", "/v1/machines/{}/drain", ids=(machine_id,), body=body or {}, scoped=True,
        ))

    def offline_machine(self, machine_id: str, body: Optional[t.ReasonRequest] = None) -> t.ActOnWorkersResponse:
        """Take a machine offline and hold it so. Its workers are OFFLINE at once with FORCED_OFFLINE, and what they hold is lost
        and tried again. Until the machine is resumed every registration on it is refused with 409 worker_held_offline. The hold
        ends 30 days after the machine's last worker was forgotten. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask(
            "POST", "/v1/machines/{}/offline", ids=(machine_id,), body=body or {}, scoped=True,
        ))

    def resume_machine(self, machine_id: str, body: Optional[t.ReasonRequest] = None) -> t.ResumeMachineResponse:
        """Take a machine's drain and hold back. Workers may register on a machine that was taken offline; those that were taken
        offline individually stay held. Workers that drain with it, or that registered on it meanwhile, are ONLINE again; those
        whose drain was asked for by itself go on draining. A machine that is not drained is left as it is. Roles: operator,
        dispatcher, admin."""
        return cast(t.ResumeMachineResponse, self.ask(
            "POST", "/v1/machines/{}/resume", ids=(machine_id,), body=body or {}, scoped=True,
        ))

    def list_queues(self, *, order: Optional[Literal["asc", "desc"]] = None) -> t.QueueList:
        """List queues. Those that hold tasks, have workers or are paused, by name. A type with work that no worker can run is shown
        by its unrunnable. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.QueueList, self.ask("GET", "/v1/queues", query={"order": order}, scoped=True))

    def get_queue(self, queue: str) -> t.Queue:
        """Read a queue. 404 when nothing is known of it: no task waits in it or runs, it has no workers and is not paused. Roles:
        viewer, operator, dispatcher, admin."""
        return cast(t.Queue, self.ask("GET", "/v1/queues/{}", ids=(queue,), scoped=True))

    def claim_tasks(self, queue: str, body: Optional[t.ClaimRequest] = None, *, token: str) -> t.ClaimResponse:
        """Hand the worker tasks. Of its queue, oldest first and fair across types, only such as it can run: their type, runtime and
        worker labels are its, and they are pinned to nobody else. Answers as soon as there is one, or with none when waitMs is
        over; a full worker waits too. The same claimId again gets the same tasks as long as the worker holds them. A claim
        counts as the worker's beat when it comes; what the worker must be told comes with its beats only."""
        return cast(t.ClaimResponse, self.ask(
            "POST", "/v1/queues/{}/claim", ids=(queue,), body=body or {}, token=token, scoped=True, drawn="claimId",
            waits=float((body or {}).get("waitMs") or 0) / 1000,
        ))

    def pause_queue(self, queue: str) -> t.Queue:
        """Stop claims from a queue. New tasks are taken, and what workers hold goes on. At most 1,000 queues of a workspace may be
        paused: one more is answered 429. Roles: operator, dispatcher, admin."""
        return cast(t.Queue, self.ask("POST", "/v1/queues/{}/pause", ids=(queue,), body={}, scoped=True))

    def resume_queue(self, queue: str) -> t.Queue:
        """Let claims go on. Those that wait are woken. A queue that is not paused, or of which nothing is known, goes on as well:
        the answer is the same. Roles: operator, dispatcher, admin."""
        return cast(t.Queue, self.ask("POST", "/v1/queues/{}/resume", ids=(queue,), body={}, scoped=True))

    def get_run(self, run_id: str) -> t.Run:
        """Count a run's tasks. Roles: viewer, submitter, operator, dispatcher, admin."""
        return cast(t.Run, self.ask("GET", "/v1/runs/{}", ids=(run_id,), scoped=True))

    def cancel_run(self, run_id: str, body: Optional[t.CancelRequest] = None) -> t.Run:
        """Ask for the end of all tasks of a run. Roles: submitter, operator, dispatcher, admin."""
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
        """Create tasks by the clock. Each fire creates its task once, however many servers there are and whenever they die: its
        idempotency key is schedule:<id>:<time>, its taskId begins with fire_, and both are reserved. A tenant may have 10,000
        schedules; one beyond is answered 429. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("POST", "/v1/schedules", body=body, scoped=True, once=True))

    def delete_schedule(self, schedule_id: str) -> t.DeletedSchedule:
        """Delete a schedule. Its tasks stay. Roles: operator, dispatcher, admin."""
        return cast(t.DeletedSchedule, self.ask("DELETE", "/v1/schedules/{}", ids=(schedule_id,), scoped=True))

    def get_schedule(self, schedule_id: str) -> t.Schedule:
        """Read a schedule. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("GET", "/v1/schedules/{}", ids=(schedule_id,), scoped=True))

    def change_schedule(self, schedule_id: str, body: Optional[t.ChangeScheduleRequest] = None) -> t.Schedule:
        """Change a part of what a schedule says. As PUT, and what is absent stays as it is. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("PATCH", "/v1/schedules/{}", ids=(schedule_id,), body=body or {}, scoped=True))

    def replace_schedule(self, schedule_id: str, body: Optional[t.ChangeScheduleRequest] = None) -> t.Schedule:
        """Replace what a schedule says. It goes on from the last fire: times since then at which it would have fired are caught up,
        maxCatchup of them. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("PUT", "/v1/schedules/{}", ids=(schedule_id,), body=body or {}, scoped=True))

    def backfill_schedule(self, schedule_id: str, body: t.BackfillRequest) -> t.AskedFires:
        """Make up for a time that is over. Fires for each time after from, up to and with to: the newest maxCatchup of them. Those
        that have fired keep their one task. Roles: operator, dispatcher, admin."""
        return cast(t.AskedFires, self.ask("POST", "/v1/schedules/{}/backfill", ids=(schedule_id,), body=body, scoped=True))

    def fire_schedule(self, schedule_id: str) -> t.FiredResponse:
        """Fire now, once. Also when it is paused, and whatever still runs. The fire has the time of the present second: twice
        within one is once. Roles: operator, dispatcher, admin."""
        return cast(t.FiredResponse, self.ask("POST", "/v1/schedules/{}/fire", ids=(schedule_id,), body={}, scoped=True, once=True))

    def next_fires(self, schedule_id: str, *, count: Optional[int] = None) -> t.NextFires:
        """When a schedule fires next. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.NextFires, self.ask("GET", "/v1/schedules/{}/next", ids=(schedule_id,), query={"count": count}, scoped=True))

    def pause_schedule(self, schedule_id: str) -> t.Schedule:
        """Stop new fires. Fires that are pending still create their tasks. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("POST", "/v1/schedules/{}/pause", ids=(schedule_id,), body={}, scoped=True))

    def resume_schedule(self, schedule_id: str) -> t.Schedule:
        """Let a schedule go on. What it has missed is caught up, maxCatchup fires. Roles: operator, dispatcher, admin."""
        return cast(t.Schedule, self.ask("POST", "/v1/schedules/{}/resume", ids=(schedule_id,), body={}, scoped=True))

    def list_scopes(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.ScopeList:
        """List tenants and workspaces in use. Those that have tasks or workers, in the order of their names, for tokens whose
        workspace is *; tenantId chooses one tenant. Roles: viewer, operator, dispatcher, admin."""
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
        """What there is, and what goes on. Levels are those of the scope: a token that opens all tenants need name none, and may
        name a tenant alone. Rates, the last hour and the series are of the whole deployment, counted by its replicas every ten
        seconds; one that has died drops out. The levels of the series are shown to a token that opens everything, and to the
        only workspace that there is. beatGapRatio is that of /metrics, of all replicas together. At most a second old. Roles:
        viewer, operator, dispatcher, admin."""
        return cast(t.Stats, self.ask("GET", "/v1/stats", query={"steps": steps}, scoped=True))

    def count_verdicts(
        self, *, by: Optional[List[str]] = None, since_ms: Optional[int] = None, reason: Optional[Literal["HEARTBEAT_TIMEOUT",
        "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST", "WORKER_REPORTED", "TERMINATED"]] =
        None, queue: Optional[str] = None, type: Optional[str] = None,
    ) -> t.VerdictCounts:
        """Count the attempts that Lubdub ended. Of the last sinceMs, grouped. They are kept as long as their tasks may be
        (finished-retention). The answer may be a second old; where there are very many, up to ten. By a label, which is read
        from the tasks, the newest 10,000 verdicts are counted. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.VerdictCounts, self.ask(
            "GET", "/v1/stats/verdicts", query={"by": by, "sinceMs": since_ms, "reason": reason, "queue": queue, "type": type},
            scoped=True,
        ))

    def get_system(self) -> t.System:
        """How the deployment does. Replicas, shards, Redis servers, brake and reconciler, of the whole deployment. At most a second
        old. A Redis server that does not answer has an error and nothing else. Summary and findings are the judgement that every
        surface shows: of Lubdub itself, and of the workers and queues of the scope; of queues only where the scope is one
        workspace. A finding that is not ok has a remedy. Codes stand for what was looked at; messages are for people, and
        change. While no Redis responds the answer is a 503 within 3 seconds, which has summary and findings too. Roles: viewer,
        operator, dispatcher, admin."""
        return cast(t.System, self.ask("GET", "/v1/system", scoped=True))

    def release_brake(self, body: Optional[t.ReleaseRequest] = None) -> t.ReleaseResponse:
        """Release the mass expiry brake. For operators who know that what went silent together has died: what the brake holds in
        this tenant and workspace expires now, and nothing is held there for a while. What beats meanwhile lives as ever. Without
        a brake that holds it changes nothing. Roles: operator, dispatcher, admin."""
        return cast(t.ReleaseResponse, self.ask("POST", "/v1/system:release", body=body or {}, scoped=True))

    def sweep(self) -> t.SweepResponse:
        """Sweep now. One sweep of everything, whatever the sweepers do by themselves. The counts are of every tenant; machines are
        named in the token's scope only. Roles: admin."""
        return cast(t.SweepResponse, self.ask("POST", "/v1/system:sweep", body={}, scoped=True))

    def list_tasks(
        self, *, state: Optional[List[Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]]] = None,
        run_id: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, schedule_id: Optional[str]
        = None, queue: Optional[str] = None, type: Optional[str] = None, label: Optional[List[str]] = None, liveness:
        Optional[Literal["FRESH", "LATE", "LOST"]] = None, claimable: Optional[bool] = None, reason:
        Optional[Literal["HEARTBEAT_TIMEOUT", "CANCEL_TIMEOUT", "DEADLINE_EXCEEDED", "RUN_TIMEOUT", "START_TIMEOUT", "WORKER_LOST",
        "WORKER_REPORTED", "TERMINATED"]] = None, finished_after: Optional[str] = None, finished_before: Optional[str] = None,
        order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.TaskList:
        """List tasks. In the order of task ids, or with finishedAfter or finishedBefore of their ends. totalCount is exact for
        state and runId (and for none), else null; other filters work within bounded pages. Pages may be short, those of large
        tasks too: go on while there is a nextPageToken. Roles: viewer, submitter, operator, dispatcher, admin."""
        return cast(t.TaskList, self.ask(
            "GET", "/v1/tasks", query={"state": state, "runId": run_id, "workerId": worker_id, "machineId": machine_id,
            "scheduleId": schedule_id, "queue": queue, "type": type, "label": label, "liveness": liveness, "claimable": claimable,
            "reason": reason, "finishedAfter": finished_after, "finishedBefore": finished_before, "order": order, "pageSize":
            page_size, "pageToken": page_token}, scoped=True,
        ))

    def iter_tasks(
        self, *, state: Optional[List[Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]]] = None,
        run_id: Optional[str] = None, worker_id: Optional[str] = None, machine_id: Optional[str] = None, schedule_id: Optional[str]
        = None, queue: Optional[str] = None, type: Optional[str] = None, label: Optional[List[str]] = None, liveness:
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
        """Create a task. Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, to be delivered
        to a worker. With one it waits, QUEUED. Roles: submitter, dispatcher, admin."""
        return cast("Union[t.TaskEnvelope, t.Task]", self.ask(
            "POST", "/v1/tasks", body=body or {}, idempotency_key=idempotency_key, traceparent=traceparent, scoped=True, keyed=True,
        ))

    def get_task(self, task_id: str) -> t.Task:
        """One task. Roles: viewer, submitter, operator, dispatcher, admin."""
        return cast(t.Task, self.ask("GET", "/v1/tasks/{}", ids=(task_id,), scoped=True))

    def next_attempt(self, task_id: str, body: t.NextAttemptRequest) -> Union[t.TaskEnvelope, t.Task]:
        """Ask for the next attempt. Of a FAILED, DISPATCHED or RUNNING task; the old attempt is fenced at once. The same
        fromAttempt again gets the same answer. 201 with the envelope, or 202 with the task when it waits in its queue, and for
        an operator, whose role does not include the tokens of attempts: a dispatcher receives the envelope by sending the same
        request. Roles: operator, dispatcher, admin."""
        return cast("Union[t.TaskEnvelope, t.Task]", self.ask(
            "POST", "/v1/tasks/{}/attempts", ids=(task_id,), body=body, scoped=True,
        ))

    def cancel_task(self, task_id: str, body: Optional[t.CancelRequest] = None) -> t.Task:
        """Ask for a task's end. Cooperative: the next beat tells the worker, whose grace period begins then. A task that has not
        started is CANCELLED at once, and so is any with a gracePeriodMs of 0: its worker is refused then as one whose attempt
        has expired. Roles: submitter, operator, dispatcher, admin."""
        return cast(t.Task, self.ask("POST", "/v1/tasks/{}/cancel", ids=(task_id,), body=body or {}, scoped=True))

    def completed(self, task_id: str, body: t.CompletedRequest, *, token: str) -> t.CompletedResponse:
        """The worker is done. The same completion again gets the same answer. A late one changes nothing."""
        return cast(t.CompletedResponse, self.ask("POST", "/v1/tasks/{}/completed", ids=(task_id,), body=body, token=token))

    def heartbeat(self, task_id: str, body: t.HeartbeatRequest, *, token: str) -> t.HeartbeatResponse:
        """The worker is alive. A 200 means that the beat is applied in the store. Stop gracefully when shouldCancel is true, and at
        once on 409 or 410. In the last third of its token's life a beat gets a fresh one."""
        return cast(t.HeartbeatResponse, self.ask("POST", "/v1/tasks/{}/heartbeat", ids=(task_id,), body=body, token=token))

    def started(self, task_id: str, body: t.StartedRequest, *, token: str) -> t.StartedResponse:
        """The worker began. Again on the running attempt it gets the same answer. A beat or a completion before it starts the
        attempt too."""
        return cast(t.StartedResponse, self.ask("POST", "/v1/tasks/{}/started", ids=(task_id,), body=body, token=token))

    def create_tasks(self, body: t.CreateTasksRequest, *, traceparent: Optional[str] = None) -> t.CreateTasksResponse:
        """Create many tasks. Each has its own result, in the same order: the body that its creation alone would have got, and its
        status. Roles: submitter, dispatcher, admin."""
        return cast(t.CreateTasksResponse, self.ask("POST", "/v1/tasks:batch", body=body, traceparent=traceparent, scoped=True))

    def cancel_tasks(self, body: t.CancelTasksRequest) -> t.ActOnTasksResponse:
        """Cancel all tasks that a selector names. A part of them with each call, of up to 1,000 that are looked at, in the order of
        their ids: go on with nextPageToken until there is none. Each is cancelled as by a call of its own; finished ones that
        match are refused. A call that failed, or whose answer was lost, may be repeated with its pageToken. With dryRun nothing
        is done: wouldDo says of how many that match anything would be. Roles: submitter, operator, dispatcher, admin."""
        return cast(t.ActOnTasksResponse, self.ask("POST", "/v1/tasks:cancel", body=body, scoped=True))

    def retry_tasks(self, body: t.RetryTasksRequest) -> t.ActOnTasksResponse:
        """Try all FAILED tasks again that a selector names. As /v1/tasks:cancel goes about its own. Each FAILED task that matches
        gets its next attempt as by a call of its own; others are refused, those that go on with task_not_failed. The envelopes
        of pushed tasks are had by asking for the same attempts again. A repeat tries those again that have failed anew
        meanwhile. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnTasksResponse, self.ask("POST", "/v1/tasks:retry", body=body, scoped=True))

    def create_token(self, body: Optional[t.CreateTokenRequest] = None) -> t.CreateTokenResponse:
        """Make a shorter token. From the request's control token another one of the same scope, queue and subject, whose role may
        nothing that its own may not, and which ends no later. It holds an hour, or for ttlMs, 12 hours at most. What takes the
        request's own token back takes this one back too, whenever it was made: it counts as issued when that one was. Roles:
        viewer, submitter, operator, dispatcher, enroll, admin."""
        return cast(t.CreateTokenResponse, self.ask("POST", "/v1/tokens", body=body or {}, scoped=True))

    def revoke_tokens(self, body: Optional[t.RevokeTokensRequest] = None) -> t.RevokeTokensResponse:
        """Take tokens back. Those that were issued until now, or until issuedBefore, are answered 401 by this server at once and by
        all within 2 s; what is issued later holds. A worker whose token does not hold registers again, if its enroll token does;
        until then nobody hears it. It stands for as long as such a token may hold. At most 10,000 stand at a time, 1,000 of them
        of one tenant: one more is answered 429. Roles: admin."""
        return cast(t.RevokeTokensResponse, self.ask("POST", "/v1/tokens:revoke", body=body or {}, scoped=True))

    def list_webhooks(
        self, *, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.WebhookList:
        """List webhooks. In the order of their ids. Roles: viewer, operator, dispatcher, admin."""
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
        """Tell a URL what happens. Messages are posted as Standard Webhooks 1.0 has it, at least once each, those about one subject
        in order while it keeps up. The answer has the secret, which is never shown again. An address that is not public is
        refused, unless the deployment opens its range with webhook-allow-cidrs; that of a name is judged whenever it is called,
        and is not looked up before. It is told of its workspace; what belongs to none, such as system.outage_credited, GET
        /v1/events tells tokens of tenant *. At most 100 a workspace and 250 a tenant, and no more of a tenant than are left for
        all others of 1,000. Roles: operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask("POST", "/v1/webhooks", body=body, scoped=True, once=True))

    def delete_webhook(self, webhook_id: str) -> t.DeleteWebhookResponse:
        """Forget a webhook. With all that it was still to be sent. Requests to it that are under way end. Roles: operator,
        dispatcher, admin."""
        return cast(t.DeleteWebhookResponse, self.ask("DELETE", "/v1/webhooks/{}", ids=(webhook_id,), scoped=True))

    def get_webhook(self, webhook_id: str) -> t.Webhook:
        """One webhook. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask("GET", "/v1/webhooks/{}", ids=(webhook_id,), scoped=True))

    def update_webhook(self, webhook_id: str, body: t.UpdateWebhookRequest) -> t.Webhook:
        """Change a webhook. The body is all that it says from now on; its secret stays. One that was switched off is switched on,
        unless enabled is false. Roles: operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask("PUT", "/v1/webhooks/{}", ids=(webhook_id,), body=body, scoped=True))

    def list_deliveries(
        self, webhook_id: str, *, status: Optional[Literal["PENDING", "DELIVERED", "DEAD"]] = None, order: Optional[Literal["asc",
        "desc"]] = None, page_size: Optional[int] = None, page_token: Optional[str] = None,
    ) -> t.WebhookDeliveryList:
        """List what a webhook is sent. Newest first, or oldest with order=asc: all that waits, and of what is over the newest 500
        delivered and as many dead. Pages may be short: go on while there is a nextPageToken. Roles: viewer, operator,
        dispatcher, admin."""
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
        """Send a webhook something again. One delivery, or all events since a time that are still kept; these keep their webhook-
        id. A call by since may end early: go on with its nextPageToken. Roles: operator, dispatcher, admin."""
        return cast(t.RedeliverResponse, self.ask(
            "POST", "/v1/webhooks/{}/redeliver", ids=(webhook_id,), body=body or {}, scoped=True, once=True,
        ))

    def rotate_secret(self, webhook_id: str, body: Optional[t.RotateSecretRequest] = None) -> t.Webhook:
        """Give a webhook another secret. The answer has it, and never again. For 24 hours messages are signed with the one before,
        too. Roles: operator, dispatcher, admin."""
        return cast(t.Webhook, self.ask(
            "POST", "/v1/webhooks/{}/rotate-secret", ids=(webhook_id,), body=body or {}, scoped=True, once=True,
        ))

    def test_webhook(self, webhook_id: str) -> t.WebhookDelivery:
        """Send a webhook a test. A message of type webhook.test. Its delivery shows the result. Roles: operator, dispatcher, admin."""
        return cast(t.WebhookDelivery, self.ask("POST", "/v1/webhooks/{}/test", ids=(webhook_id,), body={}, scoped=True, once=True))

    def list_workers(
        self, *, queue: Optional[str] = None, status: Optional[str] = None, type: Optional[str] = None, runtime: Optional[str] =
        None, machine_id: Optional[str] = None, name: Optional[str] = None, version: Optional[str] = None, label:
        Optional[List[str]] = None, liveness: Optional[Literal["FRESH", "LATE", "LOST"]] = None, schedulable: Optional[bool] = None,
        flapping: Optional[bool] = None, sort: Optional[Literal["lastHeartbeatAt", "staleCount24h", "uptimePct24h",
        "lastHeartbeat"]] = None, order: Optional[Literal["asc", "desc"]] = None, page_size: Optional[int] = None, page_token:
        Optional[str] = None,
    ) -> t.WorkerList:
        """List workers. In the order of registration, or of last heartbeats. totalCount is that of all pages, whatever the filter.
        Roles: viewer, operator, dispatcher, admin."""
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
        """Register a worker. Counts as its first beat. The same queue, machine, name, hostname and pid again take the place of the
        registration before, which is OFFLINE then, SUPERSEDED, and is named by superseded; processes that keep doing that to
        each other are told as worker.identity_conflict. With a registrationId or an Idempotency-Key a repeat gets the first
        answer and supersedes nobody. A token that is tied to a queue registers for that one only. While an operator holds the
        worker's identity (queue, machine and name; without a name queue, machine, hostname and pid) or its machine offline it is
        refused with 409 worker_held_offline, with the workerId or machineId that is held and the remedy. On a drained machine
        the answer has shouldDrain. All that a registration says may take 8 KiB. Roles: enroll, admin."""
        return cast(t.RegisterWorkerResponse, self.ask("POST", "/v1/workers", body=body, scoped=True, drawn="registrationId"))

    def get_worker(self, worker_id: str) -> t.Worker:
        """One worker. Roles: viewer, operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("GET", "/v1/workers/{}", ids=(worker_id,), scoped=True))

    def cordon_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Let a worker take nothing new. It stays ONLINE, goes on with what it holds and does not end when it is idle; its claims
        wait and get nothing, and selection passes over it. What was placed on it and waits is placed anew. Beats, drains and
        resumes leave the cordon as it is, and whoever registers in the worker's place inherits it. Again it changes nothing.
        Roles: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/cordon", ids=(worker_id,), body=body or {}, scoped=True))

    def deregister_worker(
        self, worker_id: str, body: Optional[t.DeregisterRequest] = None, *, token: Optional[str] = None,
    ) -> t.Worker:
        """The worker goes. At once, and what it holds goes back to its queues without counting as lost; or, with drain, when it has
        finished what it holds. Roles beside the worker itself: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask(
            "POST", "/v1/workers/{}/deregister", ids=(worker_id,), body=body or {}, token=token, scoped=True,
        ))

    def drain_worker(self, worker_id: str, body: Optional[t.DrainRequest] = None, *, token: Optional[str] = None) -> t.Worker:
        """Let a worker finish and go. It claims nothing more, finishes what it holds, and is OFFLINE when it has and knows that it
        drains; or at the deadline, when what it still holds goes back to its queues. Roles beside the worker itself: operator,
        dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/drain", ids=(worker_id,), body=body or {}, token=token, scoped=True))

    def worker_heartbeat(
        self, worker_id: str, body: Optional[t.WorkerHeartbeatRequest] = None, *, token: str,
    ) -> t.WorkerHeartbeatResponse:
        """The worker is alive. And with it every task that it has claimed and that has no timeout of its own. On 410 stop
        everything; the reason says whether to register again. In the last third of its token's life it gets a fresh one."""
        return cast(t.WorkerHeartbeatResponse, self.ask(
            "POST", "/v1/workers/{}/heartbeat", ids=(worker_id,), body=body or {}, token=token, scoped=True,
        ))

    def offline_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Take a worker offline and hold it so. It is OFFLINE at once and what it holds is lost, as if it had died; its beats and
        claims are 410 worker_offline with the reason FORCED_OFFLINE. Its identity (queue, machine and name; without a name
        queue, machine, hostname and pid) is refused registration until the worker is resumed, for 30 days at most. A worker that
        is OFFLINE already is held, too, unless another has taken its place. Roles: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/offline", ids=(worker_id,), body=body or {}, scoped=True))

    def resume_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Take a drain or a hold back. A worker that drains is ONLINE again. One that is held offline stays OFFLINE, and its
        identity may be registered again. Roles: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/resume", ids=(worker_id,), body=body or {}, scoped=True))

    def uncordon_worker(self, worker_id: str, body: Optional[t.ReasonRequest] = None) -> t.Worker:
        """Take a cordon back. Its claims that wait go on at once. Roles: operator, dispatcher, admin."""
        return cast(t.Worker, self.ask("POST", "/v1/workers/{}/uncordon", ids=(worker_id,), body=body or {}, scoped=True))

    def cordon_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Cordon all workers that a selector names. All that the selector says must match. One that matches nothing is told so with
        404. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:cordon", body=body, scoped=True))

    def drain_workers(self, body: t.DrainWorkersRequest) -> t.DrainWorkersResponse:
        """Drain all workers that a selector names. All that the selector says must match. One that matches nothing is told so with
        404. Roles: operator, dispatcher, admin."""
        return cast(t.DrainWorkersResponse, self.ask("POST", "/v1/workers:drain", body=body, scoped=True))

    def offline_workers(self, body: Optional[t.OfflineWorkersRequest] = None) -> t.ActOnWorkersResponse:
        """Give up all workers that a selector names, or that have been silent. They are OFFLINE at once and held so, and what they
        hold is lost, as if they had died. The same call again may find that nobody is left to give up, and says so with 200.
        Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:offline", body=body or {}, scoped=True))

    def resume_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Take the drains of all workers back that a selector names. All that the selector says must match. One that matches
        nothing is told so with 404. A drained machine stays drained. Workers that are held offline match, too, and may register
        again. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:resume", body=body, scoped=True))

    def select_worker(self, body: Optional[t.SelectWorkerRequest] = None) -> t.SelectWorkerResponse:
        """Choose a worker. Workers of the queue are asked for runtime, type, labels, status, cordon, freshness and capacity, in
        this order; rejected counts them at the first that they fail. A worker that went OFFLINE by its silence counts as stale,
        whether or not a sweep has come by. Choosing reserves nothing: use placement at creation for that. Roles: viewer,
        operator, dispatcher, admin."""
        return cast(t.SelectWorkerResponse, self.ask("POST", "/v1/workers:select", body=body or {}, scoped=True))

    def uncordon_workers(self, body: t.ActOnWorkersRequest) -> t.ActOnWorkersResponse:
        """Take the cordons of all workers back that a selector names. All that the selector says must match. One that matches
        nothing is told so with 404. Roles: operator, dispatcher, admin."""
        return cast(t.ActOnWorkersResponse, self.ask("POST", "/v1/workers:uncordon", body=body, scoped=True))

    def version(self) -> t.Version:
        """What runs here."""
        return cast(t.Version, self.ask("GET", "/version", opened=False))
