"""The bodies of all calls, as api/openapi.json describes them. Written by tools/generate.py; change it there."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

# Any JSON value.
Json = Any


class _ActOnTasksResponse(TypedDict):
    # How many of them were acted on, or are as the act wants them already; 0 when they are only counted.
    done: int
    # Matched tasks of this part are what the selector names.
    matched: int
    # Refused counts the others by the error code that each alone would have got.
    refused: Dict[str, int]


class ActOnTasksResponse(_ActOnTasksResponse, total=False):
    """ActOnTasksResponse counts what an act did to a part of the tasks that a selector names."""

    # NextPageToken asks for the next part; absent: this was the last. It holds for the same act and selector only.
    nextPageToken: str
    # How many of them the act would change, where they are only counted: a cancel those that have not ended, a retry those that are
    # FAILED. Absent where they are acted on.
    wouldDo: int


class _ActOnWorkersRequest(TypedDict):
    # Selector names the workers; all that it says must match, and it must say something.
    selector: WorkerSelector


class ActOnWorkersRequest(_ActOnWorkersRequest, total=False):
    """The body of POST /v1/workers:cordon, :uncordon and :resume."""

    # DryRun only counts.
    dryRun: Optional[bool]
    # Recorded in the events; that of a cordon is shown with the workers.
    reason: Optional[str]


class ActOnWorkersResponse(TypedDict):
    """ActOnWorkersResponse counts what an act on many workers did."""

    # How many of them are now as the act wants them.
    done: int
    dryRun: bool
    # Matched workers are ONLINE or DRAINING and what the selector names. A selector that names none is 404, unless it is only
    # counted or they are to be OFFLINE.
    matched: int
    # WorkerIDs of those that match.
    workerIds: List[str]


class AskedFire(TypedDict):
    """One of them."""

    fireAt: str
    taskId: str


class AskedFires(TypedDict):
    """Fires that somebody asked for and that are recorded. Their tasks are created within moments, each once."""

    # Ordered by time.
    fires: List[AskedFire]
    scheduleId: str
    # How many older ones are more than maxCatchup, or would make more than 64 MiB of tasks together.
    skipped: int


BackfillRequest = TypedDict("BackfillRequest", {"from": 'str', "to": 'str'}, total=True)


class BeatGapRatio(TypedDict):
    """The time between two heartbeats of a live task or worker, divided by its heartbeat timeout: 1 would have been its end. It is
    estimated from a histogram."""

    # What came closer to its timeouts, and what the numbers are about: task or worker.
    kind: str
    # What all stay below, to a tenth.
    max: float
    # What half of the gaps stay below, P99 what all but one in a hundred do.
    p50: float
    p99: float
    # How many gaps were looked at.
    samples: int


class CancelRequest(TypedDict, total=False):
    """The body of POST /v1/tasks/{taskId}/cancel and POST /v1/runs/{runId}/cancel."""

    # How long a worker has to stop from when it was told; absent: the task's cancelGracePeriodMs. 0 ends the task at once,
    # CANCELLED by TERMINATED, whether or not its worker was told. Of several requests the last that says it counts.
    gracePeriodMs: Optional[int]
    # Passed to the worker as cancelReason.
    reason: Optional[str]


class CancelTask(TypedDict):
    """An attempt to stop gracefully."""

    attempt: int
    reason: Optional[str]
    taskId: str


class _CancelTasksRequest(TypedDict):
    # Selector names the tasks; it must say something.
    selector: TaskSelector


class CancelTasksRequest(_CancelTasksRequest, total=False):
    """The body of POST /v1/tasks:cancel."""

    # DryRun only counts those that match, and of these those that the act would change.
    dryRun: Optional[bool]
    # How long a worker has to stop from when it was told; absent: the task's cancelGracePeriodMs. 0 ends the task at once,
    # CANCELLED by TERMINATED, whether or not its worker was told. Of several requests the last that says it counts.
    gracePeriodMs: Optional[int]
    # The nextPageToken of the answer before.
    pageToken: Optional[str]
    # Passed to the worker as cancelReason.
    reason: Optional[str]


class ChangeScheduleRequest(TypedDict, total=False):
    """The body of PUT and PATCH /v1/schedules/{scheduleId}. With PUT what is absent gets its default, and cron and task are
    required; with PATCH it stays as it is."""

    # Says when it fires, as in its creation. What it has missed since the last fire is caught up.
    cron: Optional[str]
    # How many missed fires are caught up.
    maxCatchup: Optional[int]
    # Allow or skip.
    overlap: Optional[Literal["allow", "skip"]]
    # What each fire creates from now on, as a whole.
    task: Optional[CreateTaskRequest]


class ClaimRequest(TypedDict, total=False):
    """The body of POST /v1/queues/{queue}/claim."""

    # ClaimID makes a repeat safe: the same one again gets the same tasks, without those that are done.
    claimId: Optional[str]
    # How many tasks to hand out at most. Default 1; a claim gets 100 at most.
    max: Json
    # Types to claim, some of those that the worker registered; absent: all of them, and tasks without a type.
    types: Optional[List[str]]
    # How long to wait for the first task. Default 0: not at all.
    waitMs: Optional[int]


class ClaimResponse(TypedDict):
    """ClaimResponse hands tasks to a worker; none when none came in time."""

    tasks: List[TaskEnvelope]


class _CompletedRequest(TypedDict):
    # The attempt that the token was issued for.
    attempt: int
    # Says how the attempt ended.
    outcome: Literal["SUCCEEDED", "FAILED", "CANCELLED"]


class CompletedRequest(_CompletedRequest, total=False):
    """The body of POST /v1/tasks/{taskId}/completed."""

    # Says where a cancel met the work.
    cancelledDuringPhase: Optional[str]
    # The worker's own time. It is kept and shown, and decides nothing.
    completedAt: Optional[str]
    # Says what went wrong; FAILED needs its category. It is kept as it is, with any further fields, but that retryable is added
    # where it is absent.
    error: Optional[TaskError]
    # Any JSON object; it is kept as it is.
    metrics: Optional[Dict[str, Json]]
    # Any JSON value; it is kept as it is.
    output: Json
    # Any JSON value that says how far the work had come before its cancel.
    partialProgress: Json
    # WorkerID names the worker.
    workerId: Optional[str]


class _CompletedResponse(TypedDict):
    # Always true.
    acknowledged: bool
    # This attempt's outcome.
    finalState: Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    # The store's clock.
    serverTime: str


class CompletedResponse(_CompletedResponse, total=False):
    """CompletedResponse acknowledges a completion. The same completion again gets the same answer."""

    # Its number.
    nextAttempt: int
    # WillRetry reports that another attempt follows.
    willRetry: bool


class _CreateScheduleRequest(TypedDict):
    # Says when it fires, in UTC: seconds minutes hours day-of-month month day-of-week [year]. Days of the week are 1 to 7 with 1 =
    # SUN, or names; both day fields must match, and ? in one of them is any day; years are 1970 to 2100.
    cron: str
    # What each fire creates, as in POST /v1/tasks: with a queue, and without taskId, deadline, notBefore and traceparent.
    task: Optional[CreateTaskRequest]


class CreateScheduleRequest(_CreateScheduleRequest, total=False):
    """The body of POST /v1/schedules."""

    # How many missed fires are caught up, the newest: 0 to 1,000. Default 100.
    maxCatchup: Optional[int]
    # What a fire does while the task of the one before is not finished: allow (the default) creates its own all the same, skip does
    # not.
    overlap: Optional[Literal["allow", "skip"]]
    # ScheduleID names the schedule within its scope; absent: Lubdub makes one.
    scheduleId: Optional[str]
    # Half of the scope; absent: the query's, else the token's.
    tenantId: Optional[str]
    # The other half.
    workspaceId: Optional[str]


class CreateTaskRequest(TypedDict, total=False):
    """The body of POST /v1/tasks. Without a queue the task is pushed: it is dispatched at once and the answer is its TaskEnvelope.
    With a queue it waits until a worker claims it."""

    # The caller's own id of what the work makes.
    assetId: Optional[str]
    # How long the worker has after it was told of a cancel. Default 30,000.
    cancelGracePeriodMs: Optional[int]
    # Deadline fails the task with DEADLINE_EXCEEDED when it passes.
    deadline: Optional[str]
    # How often the worker should beat. Default 30,000.
    heartbeatIntervalMs: Optional[int]
    # How long an attempt may be silent: at least twice the interval, rounded up to two significant digits. Default 90,000; a queue
    # task without one lives by its worker's beat.
    heartbeatTimeoutMs: Optional[int]
    # Up to 64 pairs to find the task by.
    labels: Optional[Dict[str, str]]
    # The earliest time of the first claim. Queue tasks only.
    notBefore: Optional[str]
    # Any JSON value for the worker.
    payload: Json
    # Placement chooses a worker at creation. Queue tasks only.
    placement: Optional[Placement]
    # Where the task waits; absent: it is pushed.
    queue: Optional[str]
    # RenewToken lets beats renew the token. Default true; with false the token must cover the deadline.
    renewToken: Optional[bool]
    # Any JSON object; the envelope carries it.
    resources: Optional[Dict[str, Json]]
    # Says how often the task is tried again. Queue tasks only.
    retry: Optional[RetryPolicy]
    # RunID groups tasks; absent: a run of its own.
    runId: Optional[str]
    # RunTimeoutMs bounds the time from an attempt's start to its end, rounded up to two significant digits; absent: no bound.
    runTimeoutMs: Optional[int]
    # Runtime that a worker must have. Queue tasks only.
    runtime: Optional[str]
    # StartTimeoutMs bounds the time from dispatch to the first sign of life, rounded up to two significant digits. Default 60,000
    # after a claim; for pushed tasks the life of their token.
    startTimeoutMs: Optional[int]
    # TaskID names the task within its scope; absent: Lubdub makes one. Ids that begin with fire_ are reserved for the tasks of
    # schedules.
    taskId: Optional[str]
    # The caller's own name for the work.
    taskKey: Optional[str]
    # Half of the scope; absent: the query's, else the token's.
    tenantId: Optional[str]
    # The life of the task token, 1 to 7,200. Default 3,600, or as long as the deadline needs.
    tokenTtlSeconds: Optional[int]
    # The W3C trace context that the task belongs to; absent: the header's. It stands in the envelope and in the task's events.
    traceparent: Optional[str]
    # Says which kind of work it is; workers register for types.
    type: Optional[str]
    # WorkerID pins the task to one worker, which must be there. Queue tasks only.
    workerId: Optional[str]
    # WorkerLabels that a worker must have. Queue tasks only.
    workerLabels: Optional[Dict[str, str]]
    # The other half.
    workspaceId: Optional[str]


class CreateTasksItem(TypedDict, total=False):
    """One creation among many."""

    # The caller's own id of what the work makes.
    assetId: Optional[str]
    # How long the worker has after it was told of a cancel. Default 30,000.
    cancelGracePeriodMs: Optional[int]
    # Deadline fails the task with DEADLINE_EXCEEDED when it passes.
    deadline: Optional[str]
    # How often the worker should beat. Default 30,000.
    heartbeatIntervalMs: Optional[int]
    # How long an attempt may be silent: at least twice the interval, rounded up to two significant digits. Default 90,000; a queue
    # task without one lives by its worker's beat.
    heartbeatTimeoutMs: Optional[int]
    # For this item what the header of the same name is for POST /v1/tasks.
    idempotencyKey: Optional[str]
    # Up to 64 pairs to find the task by.
    labels: Optional[Dict[str, str]]
    # The earliest time of the first claim. Queue tasks only.
    notBefore: Optional[str]
    # Any JSON value for the worker.
    payload: Json
    # Placement chooses a worker at creation. Queue tasks only.
    placement: Optional[Placement]
    # Where the task waits; absent: it is pushed.
    queue: Optional[str]
    # RenewToken lets beats renew the token. Default true; with false the token must cover the deadline.
    renewToken: Optional[bool]
    # Any JSON object; the envelope carries it.
    resources: Optional[Dict[str, Json]]
    # Says how often the task is tried again. Queue tasks only.
    retry: Optional[RetryPolicy]
    # RunID groups tasks; absent: a run of its own.
    runId: Optional[str]
    # RunTimeoutMs bounds the time from an attempt's start to its end, rounded up to two significant digits; absent: no bound.
    runTimeoutMs: Optional[int]
    # Runtime that a worker must have. Queue tasks only.
    runtime: Optional[str]
    # StartTimeoutMs bounds the time from dispatch to the first sign of life, rounded up to two significant digits. Default 60,000
    # after a claim; for pushed tasks the life of their token.
    startTimeoutMs: Optional[int]
    # TaskID names the task within its scope; absent: Lubdub makes one. Ids that begin with fire_ are reserved for the tasks of
    # schedules.
    taskId: Optional[str]
    # The caller's own name for the work.
    taskKey: Optional[str]
    # Half of the scope; absent: the query's, else the token's.
    tenantId: Optional[str]
    # The life of the task token, 1 to 7,200. Default 3,600, or as long as the deadline needs.
    tokenTtlSeconds: Optional[int]
    # The W3C trace context that the task belongs to; absent: the header's. It stands in the envelope and in the task's events.
    traceparent: Optional[str]
    # Says which kind of work it is; workers register for types.
    type: Optional[str]
    # WorkerID pins the task to one worker, which must be there. Queue tasks only.
    workerId: Optional[str]
    # WorkerLabels that a worker must have. Queue tasks only.
    workerLabels: Optional[Dict[str, str]]
    # The other half.
    workspaceId: Optional[str]


class CreateTasksRequest(TypedDict):
    """The body of POST /v1/tasks:batch."""

    # 1 to 1,000 creations; each has its own outcome.
    tasks: List[CreateTasksItem]


class CreateTasksResponse(TypedDict):
    """Has one result for each creation, in the same order: the body that the creation alone would have got (a TaskEnvelope, a Task
    or an Error) with its HTTP status as "status"."""

    results: List[Union[TaskEnvelope, Task, Error]]


class CreateTokenRequest(TypedDict, total=False):
    """The body of POST /v1/tokens."""

    # Role may nothing that the request's own token may not; absent: the same role.
    role: Optional[Literal["viewer", "submitter", "operator", "dispatcher", "enroll", "admin"]]
    # How long the token holds, in whole seconds, and no longer than the request's own; absent: an hour.
    ttlMs: Optional[int]


class _CreateTokenResponse(TypedDict):
    expiresAt: str
    role: str
    # TenantID and WorkspaceID are those of the request's own token; * is all.
    tenantId: str
    token: str
    workspaceId: str


class CreateTokenResponse(_CreateTokenResponse, total=False):
    """The answer to POST /v1/tokens."""

    # The only one for which an enroll token registers workers.
    queue: str
    # Who bears it, as the request's own token says.
    subject: str


class _CreateWebhookRequest(TypedDict):
    events: List[str]
    # Where messages are posted to: https, and http where the deployment allows it.
    url: str


class CreateWebhookRequest(_CreateWebhookRequest, total=False):
    """The body of POST /v1/webhooks."""

    description: Optional[str]
    # True unless said. While it is false nothing is collected for it, and what waits is given up.
    enabled: Optional[bool]
    machineId: Optional[str]
    queue: Optional[str]
    runId: Optional[str]
    # Secret signs its messages: whsec_ and the base64 of 24 to 64 bytes. Absent: one is made.
    secret: Optional[str]
    subject: Optional[str]
    taskType: Optional[str]
    # WebhookID names it; absent: one is made.
    webhookId: Optional[str]
    workerId: Optional[str]


class DeleteWebhookResponse(TypedDict):
    """The answer of DELETE /v1/webhooks/{webhookId}."""

    deleted: bool
    webhookId: str


class DeletedSchedule(TypedDict):
    """The answer of DELETE /v1/schedules/{scheduleId}."""

    deleted: bool
    scheduleId: str


class DeregisterRequest(TypedDict, total=False):
    """The body of POST /v1/workers/{workerId}/deregister."""

    # Drain lets it finish what it holds first; else it is OFFLINE at once and its tasks go to others.
    drain: Optional[bool]
    # Shown with the worker.
    reason: Optional[str]


class DrainRequest(TypedDict, total=False):
    """The body of the drain of one worker or machine."""

    # How long until what is still held is handed to others; absent: never.
    deadlineMs: Optional[int]
    # Shown with the worker.
    reason: Optional[str]


class _DrainWorkersRequest(TypedDict):
    # Selector names the workers; all that it says must match, and it must say something.
    selector: WorkerSelector


class DrainWorkersRequest(_DrainWorkersRequest, total=False):
    """The body of POST /v1/workers:drain."""

    # How long until what is still held is handed to others; absent: never.
    deadlineMs: Optional[int]
    # DryRun only counts.
    dryRun: Optional[bool]
    # Shown with the worker.
    reason: Optional[str]


class DrainWorkersResponse(TypedDict):
    """DrainWorkersResponse counts what a drain of many did."""

    # How many of them are DRAINING now.
    draining: int
    dryRun: bool
    # Matched workers are ONLINE or DRAINING and what the selector names. A selector that names none is 404, unless it is only
    # counted.
    matched: int
    # WorkerIDs of those that match.
    workerIds: List[str]


class _Error(TypedDict):
    # One of the codes.
    error: str
    # Says what happened and what to do about it.
    message: str


class Error(_Error, total=False):
    """The body of every refusal."""

    # How many workers a selection considered.
    considered: int
    # The task's current attempt.
    expectedAttempt: int
    # The field, parameter or header that is wrong, as a path such as retry.maxAttempts.
    field: str
    # The machine by whose hold a registration is refused.
    machineId: str
    # Why Lubdub ended the attempt, why the worker is OFFLINE, or what was given as the reason of the hold.
    reason: str
    # The attempt that the call was for.
    receivedAttempt: int
    # How many of them each filter removed.
    rejected: Rejected
    # The command by which an operator lifts the hold.
    remedy: str
    # Given with a 500 only; every answer has it in its X-Request-Id header.
    requestId: str
    # The state that the task is in.
    state: Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    # The worker by whose hold a registration is refused.
    workerId: str


class ErrorGroup(TypedDict):
    """How many attempts ended in the same way."""

    count: int
    # The outcome with its reason, or with the category and the message that the worker reported.
    error: str


class _Event(TypedDict):
    # The rest, such as a verdict's evidence.
    data: Json
    # ID names it for good: what is told twice has the same.
    id: str
    # When.
    time: str
    # What has happened, such as task.zombie.
    type: str


class Event(_Event, total=False):
    """One thing that has happened. Fields that do not apply are left out."""

    # The number of the task's attempt.
    attempt: int
    # Who did it: the subject of a token, a worker, a sweeper or a replica.
    by: str
    # The reason of a verdict or an end, such as HEARTBEAT_TIMEOUT.
    cause: str
    # That worker's machine, or the one that it is about.
    machineId: str
    # The task's or the worker's.
    queue: str
    # The task's run.
    runId: str
    # The task, worker, machine or whatever else it is about.
    subject: str
    # The task's type.
    taskType: str
    # TenantID and WorkspaceID are absent in events about the whole deployment.
    tenantId: str
    # The W3C trace context of the task's creation.
    traceparent: str
    # That worker's.
    version: str
    # The worker that has the attempt or had it last, or that it is about.
    workerId: str
    workspaceId: str


EventGap = TypedDict("EventGap", {"from": 'str', "shards": 'List[int]', "to": 'str'}, total=True)


class _EventList(TypedDict):
    # In the order of their times, those about one subject in the order in which they happened.
    events: List[Event]
    # Whether there may be more to read now. A page looks at 5,000 events at most, so where a filter passes over many it may be
    # short, or empty, and there be more; false: all that is kept was looked at.
    more: bool
    # The cursor to go on with, as after, also where there is no more now.
    next: str


class EventList(_EventList, total=False):
    """A page of GET /v1/events."""

    # Tells that events between after and the first of these are not kept any more.
    gap: EventGap


class _Evidence(TypedDict):
    detectedAt: str
    # How long after the timeout the verdict came.
    detectionLagMs: int
    # Null when nothing was ever heard.
    lastHeartbeatAt: Optional[str]
    # The time since the last beat that did not count.
    outageCreditMs: int
    # The silence that counted: time during which no beat could land is left out.
    silentMs: int
    # Sweeper names the process that found it; each has one name.
    sweeper: str
    # What was exceeded.
    timeoutMs: int


class Evidence(_Evidence, total=False):
    """Evidence answers "why was it killed?"."""

    # MassExpiryHeld reports that the mass expiry brake had spared it, so that it had one timeout more.
    massExpiryHeld: bool
    # Why an attempt was lost with its worker: that worker's statusReason, or NOT_IN_INVENTORY when it lives and two of its
    # inventories in a row did not list the attempt. The times above are then the worker's.
    workerReason: str


class _Finding(TypedDict):
    about: Literal["us", "them", "both", "none"]
    # Code names what was looked at, such as redis-policy.
    code: str
    # What was found, in a sentence.
    message: str
    severity: Literal["ok", "warn", "fail"]


class Finding(_Finding, total=False):
    """One thing that was looked at, and how it was found. It is for people to read: messages may change, codes do not."""

    # What to do about it; absent where nothing is wrong.
    remedy: str


class FiredResponse(TypedDict):
    """The answer of POST /v1/schedules/{scheduleId}/fire."""

    fireAt: str
    scheduleId: str
    taskId: str


class _Health(TypedDict):
    # Ok; degraded: the store is in trouble, and this server should get work all the same; or draining: it should not.
    status: str


class Health(_Health, total=False):
    """The body of /livez, /readyz and /healthz."""

    # Says what is wrong when the status is not ok.
    message: str
    # Says what to do about it when the status is not ok.
    next: str


class _HeartbeatItem(TypedDict):
    # The attempt that the token was issued for.
    attempt: int
    # TaskID names the task.
    taskId: str


class HeartbeatItem(_HeartbeatItem, total=False):
    """One beat among many."""

    # The worker's own time. It is kept and shown; liveness goes by receipt.
    heartbeatAt: Optional[str]
    # Free text about the progress, cut at 1,024 bytes of JSON text; absent: as before.
    message: Optional[str]
    # Any number from 0 to 100; absent: as before.
    progressPct: Optional[float]
    # TaskToken opens this one beat; absent: the worker's token of the request does.
    taskToken: Optional[str]
    # WorkerID names the worker.
    workerId: Optional[str]


class _HeartbeatRequest(TypedDict):
    # The attempt that the token was issued for.
    attempt: int


class HeartbeatRequest(_HeartbeatRequest, total=False):
    """The body of POST /v1/tasks/{taskId}/heartbeat."""

    # The worker's own time. It is kept and shown; liveness goes by receipt.
    heartbeatAt: Optional[str]
    # Free text about the progress, cut at 1,024 bytes of JSON text; absent: as before.
    message: Optional[str]
    # Any number from 0 to 100; absent: as before.
    progressPct: Optional[float]
    # WorkerID names the worker.
    workerId: Optional[str]


class _HeartbeatResponse(TypedDict):
    # Always true.
    acknowledged: bool
    # How long to wait before the next beat.
    nextHeartbeatMs: int
    # The store's clock when the beat was applied.
    serverTime: str
    # ShouldCancel asks the worker to stop, to clean up and to report the outcome CANCELLED.
    shouldCancel: bool


class HeartbeatResponse(_HeartbeatResponse, total=False):
    """HeartbeatResponse acknowledges a beat: it is applied in the store."""

    # What whoever cancelled said.
    cancelReason: str
    # TaskToken replaces the token in use; it is there only in the last third of that token's life.
    taskToken: str
    # When the new token ends.
    tokenExpiresAt: str


class _HeartbeatResult(TypedDict):
    # 200, or a status of the error table.
    status: int
    taskId: str


class HeartbeatResult(_HeartbeatResult, total=False):
    """The outcome of one beat: Status is the HTTP status that the beat alone would have got, and the fields are those of its
    answer."""

    # The fields of HeartbeatResponse, with status 200.
    acknowledged: bool
    cancelReason: str
    # The fields of Error, with any other status.
    error: str
    expectedAttempt: int
    field: str
    message: str
    nextHeartbeatMs: int
    reason: str
    receivedAttempt: int
    # Set with status 503.
    retryAfterMs: int
    serverTime: str
    shouldCancel: bool
    state: Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    taskToken: str
    tokenExpiresAt: str


class HeartbeatsRequest(TypedDict):
    """The body of POST /v1/heartbeats."""

    # 1 to 1,000 beats of any tasks.
    heartbeats: List[HeartbeatItem]


class HeartbeatsResponse(TypedDict):
    """HeartbeatsResponse answers many beats."""

    # Has one entry for each beat, in the same order.
    results: List[HeartbeatResult]
    # The store's clock.
    serverTime: str


class _HistoryEntry(TypedDict):
    attempt: int
    dispatchedAt: Optional[str]
    endedAt: Optional[str]
    # What Lubdub's verdict rests on; null when the worker ended the attempt itself.
    evidence: Optional[Evidence]
    # When the attempt last beat; null when it never did.
    lastHeartbeatAt: Optional[str]
    lastProgress: Optional[Progress]
    # SUCCEEDED, FAILED, CANCELLED, ZOMBIE, TIMED_OUT, LOST or SUPERSEDED.
    outcome: Literal["SUCCEEDED", "FAILED", "CANCELLED", "ZOMBIE", "TIMED_OUT", "LOST", "SUPERSEDED"]
    reason: Optional[str]
    startedAt: Optional[str]
    workerId: Optional[str]


class HistoryEntry(_HistoryEntry, total=False):
    """One ended attempt."""

    # What the worker's own clock said when it completed the attempt.
    completedAt: str
    # At most 2 KiB; the texts of a longer one are cut.
    error: Optional[Dict[str, Json]]
    # At most 1 KiB: of more, those members that come first and fit. The task has all of the last attempt's.
    metrics: Json
    # RetriesExhausted reports that the attempt was worth a retry, but the task's policy allows no more.
    retriesExhausted: bool
    willRetry: bool


class Hold(TypedDict):
    """What keeps a worker that an operator took offline, or the workers of such a machine, from registering again. It lasts until
    the worker or the machine is resumed, 30 days at most after the worker's end or after the machine's last worker was
    forgotten."""

    reason: Optional[str]
    since: Optional[str]


class Index(TypedDict):
    """The body of GET /."""

    links: IndexLinks
    name: str
    # Says what to do first.
    next: str
    version: str


class IndexLinks(TypedDict):
    """Paths on the server, with the base path that a proxy shows it below."""

    api: str
    dashboard: str
    docs: str
    health: str
    openapi: str
    version: str


class Levels(TypedDict):
    """How many there are at a moment."""

    machines: MachineCounts
    # How long what sweepers should have taken first has been overdue, in the whole deployment.
    oldestOverdueMs: int
    # By state.
    tasks: Dict[str, int]
    workers: WorkerLevels


class LostTask(TypedDict):
    """An attempt that is not the worker's any more."""

    attempt: int
    # The code that a beat of the attempt would be refused with.
    error: str
    taskId: str


class LostWorker(TypedDict):
    """A worker that ended without having been asked to, and what became of the tasks that it held."""

    # Attempts were taken from it so far; each task is in one of the three counts below.
    attempts: int
    # Exhausted tasks failed because their retries are used up.
    exhausted: int
    # Failed tasks had no retries left to use: they have no retry policy, or were to be cancelled.
    failed: int
    # True when that is often, MachineFlapping when all workers of its machine were lost at once that often.
    flapping: bool
    hostname: Optional[str]
    # Null when it never sent one.
    lastHeartbeatAt: Optional[str]
    lostAt: Optional[str]
    machineFlapping: bool
    machineId: str
    name: Optional[str]
    queue: str
    # HEARTBEAT_TIMEOUT, SUPERSEDED or FORCED_OFFLINE.
    reason: str
    requeued: int
    # How often this worker, or one that it replaced, stopped sending heartbeats in the last 24 h.
    staleCount24h: int
    workerId: str


class Machine(TypedDict):
    """A host as its workers show it."""

    # There while the machine is drained: workers that register on it get no work until it is resumed.
    drain: Optional[MachineDrain]
    flapping: bool
    # There while the machine is held offline: registrations on it are refused until it is resumed.
    hold: Optional[Hold]
    lastHeartbeatAt: Optional[str]
    machineId: str
    # How often in the last 24 h it went OFFLINE because its last worker had gone stale.
    staleCount24h: int
    # ONLINE while a worker of it is, else DRAINING while one is, else OFFLINE.
    status: Literal["ONLINE", "DRAINING", "OFFLINE"]
    # The share of the last 24 h, or since it was first seen, in which it was not OFFLINE.
    uptimePct24h: float
    workers: MachineCounts


class MachineCounts(TypedDict):
    """MachineCounts counts a machine's workers."""

    draining: int
    offline: int
    online: int


class MachineDrain(TypedDict):
    """The drain of a machine."""

    # When what its workers still held at the drain is handed to others.
    deadline: Optional[str]
    reason: Optional[str]
    since: Optional[str]


class _MachineList(TypedDict):
    machines: List[Machine]
    totalCount: int


class MachineList(_MachineList, total=False):
    """One page of machines, in the order of their ids."""

    nextPageToken: str


class NextAttemptRequest(TypedDict):
    """The body of POST /v1/tasks/{taskId}/attempts."""

    # The attempt that the new one follows.
    fromAttempt: int


class NextFires(TypedDict):
    """The answer of GET /v1/schedules/{scheduleId}/next."""

    # The fires to come, as if the schedule were not paused.
    next: List[str]
    scheduleId: str


class OfflineWorkersRequest(TypedDict, total=False):
    """The body of POST /v1/workers:offline."""

    # DryRun only counts.
    dryRun: Optional[bool]
    # Shown with the workers and recorded in the events.
    reason: Optional[str]
    # Selector names the workers; all that it says must match. It or silentForMs must say something.
    selector: Optional[SilentSelector]
    # SilentForMs may stand here as well as in the selector, once.
    silentForMs: Optional[int]


class Placement(TypedDict, total=False):
    """Placement chooses a worker when the task is created."""

    # LeastLoaded, roundRobin or random.
    strategy: Optional[Literal["leastLoaded", "roundRobin", "random"]]


class PoisonTask(TypedDict):
    """A task that may be what ends its workers: several were lost while they ran it."""

    # How its attempts ended, grouped, most first.
    errors: List[ErrorGroup]
    # When its newest lost attempt was ended.
    lastLostAt: Optional[str]
    queue: Optional[str]
    state: Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    taskId: str
    type: Optional[str]
    # Those that were lost with it in the last hour, newest first, 10 at most.
    workers: List[LostWorker]


class Progress(TypedDict):
    """A progress report."""

    # A string, as the worker sent it.
    message: Optional[str]
    # A number from 0 to 100, as the worker sent it.
    progressPct: Optional[float]


class _Queue(TypedDict):
    # How many tasks could be claimed now; those that wait for their backoff or notBefore do not count.
    depth: int
    # How long the oldest of those that could be claimed has waited; null when there is none.
    oldestWaitMs: Optional[int]
    # Both together.
    outstanding: int
    # Paused reports that nothing is handed out.
    paused: bool
    queue: str
    # How many of its tasks are DISPATCHED or RUNNING.
    running: int
    tenantId: str
    # The types of those tasks.
    types: List[QueueType]
    # Workers counts the queue's workers by status.
    workers: QueueWorkers
    workspaceId: str


class Queue(_Queue, total=False):
    """What waits in one queue and who works for it."""

    # Created reports, when a queue is paused, that nothing was known of it before: perhaps its name is mistyped.
    created: bool


class QueueList(TypedDict):
    """The answer of GET /v1/queues."""

    # Those that hold tasks, have workers or are paused, by name.
    queues: List[Queue]


class QueueType(TypedDict):
    """What waits of one type in a queue."""

    depth: int
    # How long the oldest has waited.
    oldestWaitMs: int
    # Null for tasks without one.
    type: Optional[str]
    # How many of them no ONLINE worker of the queue can run: none that is not cordoned has their type, runtime and labels, or the
    # one that they are pinned to is cordoned or not there.
    unrunnable: int


class QueueWorkers(TypedDict):
    """QueueWorkers counts workers of a queue."""

    draining: int
    offline: int
    online: int


class ReasonRequest(TypedDict, total=False):
    """The body of what needs no more than a reason."""

    # Shown with the worker where it ends or is cordoned, and recorded in the event.
    reason: Optional[str]


class RedeliverRequest(TypedDict, total=False):
    """The body of POST /v1/webhooks/{webhookId}/redeliver: one of its fields."""

    # The one to send again now.
    deliveryId: Optional[str]
    # PageToken goes on where a call by since has ended.
    pageToken: Optional[str]
    # Has all events since then sent again that are still kept.
    since: Optional[str]


class _RedeliverResponse(TypedDict):
    # How many messages wait to be sent by this call.
    queued: int


class RedeliverResponse(_RedeliverResponse, total=False):
    """Its answer."""

    # The time of which events are not kept any more.
    gap: EventGap
    # There when the call has not come to the end.
    nextPageToken: str


class _RegisterWorkerRequest(TypedDict):
    # Queue that the worker claims from.
    queue: str
    # Types of tasks that it runs, at least one.
    types: List[str]


class RegisterWorkerRequest(_RegisterWorkerRequest, total=False):
    """The body of POST /v1/workers."""

    # Hostname and PID together make its identity: the same ones with the same queue, machine and name take the place of the
    # registration before. In containers, where every process may be pid 1, a name, machineId or hostname of its own keeps each from
    # taking another's place.
    hostname: Optional[str]
    # Up to 64 pairs to select the worker by.
    labels: Optional[Dict[str, str]]
    # The host that it runs on; absent: the hostname, made an id where it is none, else the worker is its own machine.
    machineId: Optional[str]
    # How many tasks it holds at most. Default 100; 0 counts as 1.
    maxConcurrent: Optional[int]
    # For people; a worker that is started again under its name is known as the same.
    name: Optional[str]
    # Its process id; 0 and absent: not said.
    pid: Optional[int]
    # Asked, where the deployment probes, before a late worker is declared dead.
    probeUrl: Optional[str]
    # Drawn by the process for each registration, and makes its repeats safe as the header Idempotency-Key does: they get the first
    # answer and supersede nobody, however late they come. It is kept for 24 hours, or for as long as OFFLINE workers are where that
    # is shorter.
    registrationId: Optional[str]
    # Runtimes that it has.
    runtimes: Optional[List[str]]
    # Version of the worker's program.
    version: Optional[str]


class _RegisterWorkerResponse(TypedDict):
    # How often the worker is to beat; the server chooses.
    heartbeatIntervalMs: int
    # How long it may be silent.
    heartbeatTimeoutMs: int
    machineId: str
    tokenExpiresAt: str
    workerId: str
    # WorkerToken opens the worker's own calls.
    workerToken: str


class RegisterWorkerResponse(_RegisterWorkerResponse, total=False):
    """The answer to a registration, which counts as the first beat."""

    # True where the worker's machine is drained: the worker beats and claims nothing until a heartbeat answers shouldDrain false,
    # once the machine is resumed. Absent otherwise.
    shouldDrain: bool
    # The worker with the same identity whose place this one took.
    superseded: str


class _Rejected(TypedDict):
    full: int
    labels: int
    runtime: int
    stale: int
    status: int
    type: int


class Rejected(_Rejected, total=False):
    """Rejected counts workers at the first filter that they failed, in the order in which they are asked."""

    # Cordoned workers take nothing new until they are uncordoned; left out where there are none.
    cordoned: int


class ReleaseRequest(TypedDict, total=False):
    """The body of POST /v1/system:release."""

    # How long the mass expiry brake spares nothing in this tenant and workspace; absent: 10 minutes.
    durationMs: Optional[int]


class ReleaseResponse(TypedDict):
    """The answer to POST /v1/system:release."""

    releasedUntil: Optional[str]
    # TasksReleased were spared and expire now unless they beat.
    tasksReleased: int
    # WorkersReleased were spared and go OFFLINE now unless they beat.
    workersReleased: int


class ResumeMachineResponse(TypedDict):
    """ResumeMachineResponse counts what resuming a machine did."""

    # Matched workers of the machine were DRAINING.
    matched: int
    # How many of them are ONLINE by this call: those that drained with the machine.
    resumed: int
    # WorkerIDs of those.
    workerIds: List[str]


class Retry(TypedDict):
    """A retry policy in force."""

    initialBackoffMs: int
    maxAttempts: int
    maxBackoffMs: int
    maxLosses: int
    multiplier: float


class RetryPolicy(TypedDict, total=False):
    """RetryPolicy in a request; absent fields have the default that their comment names."""

    # The wait before the first retry. Default 1,000.
    initialBackoffMs: Optional[int]
    # How many failures that workers report fail the task. Default 3.
    maxAttempts: Optional[int]
    # MaxBackoffMs bounds the wait. Default 60,000.
    maxBackoffMs: Optional[int]
    # How many attempts may be lost to silence or a dead worker and be tried again. Default 3.
    maxLosses: Optional[int]
    # Multiplier of the wait from retry to retry, 1 to 100. Default 2.
    multiplier: Optional[float]


class _RetryTasksRequest(TypedDict):
    # Selector names the tasks; it must say something. Of those that match only FAILED ones are tried again.
    selector: TaskSelector


class RetryTasksRequest(_RetryTasksRequest, total=False):
    """The body of POST /v1/tasks:retry."""

    # DryRun only counts those that match, and of these those that the act would change.
    dryRun: Optional[bool]
    # The nextPageToken of the answer before.
    pageToken: Optional[str]


class RevokeTokensRequest(TypedDict, total=False):
    """The body of POST /v1/tokens:revoke. It has one of subject, workerId and tenantId."""

    # When the last of them was issued, to the second; absent: now.
    issuedBefore: Optional[str]
    # Whose control tokens do not hold any more, in the tenant and workspace of the request; with a token for all of them in all,
    # unless the query names one.
    subject: Optional[str]
    # The tenant of whose tokens, of every kind, none holds any more. It takes an admin of all its workspaces.
    tenantId: Optional[str]
    # The worker whose own token, and the tokens of whose tasks, do not hold any more.
    workerId: Optional[str]


class _RevokeTokensResponse(TypedDict):
    # A whole second. A token that was issued in that second does not hold either.
    issuedBefore: Optional[str]
    # * where tokens of every tenant are meant.
    tenantId: str
    # * where tokens of every workspace are meant.
    workspaceId: str


class RevokeTokensResponse(_RevokeTokensResponse, total=False):
    """The answer to POST /v1/tokens:revoke: what is heeded by this server now, and by all within 2 s."""

    subject: str
    workerId: str


class RotateSecretRequest(TypedDict, total=False):
    """The body of POST /v1/webhooks/{webhookId}/rotate-secret."""

    # The new one; absent: one is made.
    secret: Optional[str]


class Run(TypedDict):
    """Run counts the tasks of a run."""

    # Has every state, also those with no task.
    counts: Dict[str, int]
    runId: str
    tenantId: str
    # Their sum.
    totalCount: int
    workspaceId: str


class Schedule(TypedDict):
    """Schedule creates a task whenever its time has come."""

    createdAt: str
    cron: str
    # How many fires have created their tasks.
    fired: int
    # The last ten that were dealt with, newest first.
    fires: List[ScheduleFire]
    # The last fire that was dealt with; before the first the time of creation.
    last: str
    maxCatchup: int
    # The fire to come; null when none is, or when the schedule is paused.
    next: Optional[str]
    overlap: Literal["allow", "skip"]
    # Paused reports that it does not fire.
    paused: bool
    pausedAt: Optional[str]
    # How many fires wait for their tasks.
    pending: int
    scheduleId: str
    # How many fires have not: they were missed and are more than maxCatchup, the task before still ran, or theirs was refused.
    skipped: int
    # What each fire creates; lists leave out its payload and resources.
    task: Optional[CreateTaskRequest]
    tenantId: str
    updatedAt: str
    workspaceId: str


class _ScheduleFire(TypedDict):
    fireAt: str
    # Schedule, manual or backfill: where it comes from.
    kind: str
    # When that was noted.
    notedAt: str
    # CREATED, SKIPPED (the task before still ran) or REFUSED (its task was).
    outcome: str


class ScheduleFire(_ScheduleFire, total=False):
    """One time at which a schedule fired."""

    # The code with which the task was refused.
    error: str
    # Why that task failed.
    reason: str
    # That of the task that was created; absent when it is forgotten.
    state: Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    # The task that was created; with SKIPPED the one that still ran.
    taskId: str


class _ScheduleList(TypedDict):
    # Ordered by id.
    schedules: List[Schedule]
    totalCount: int


class ScheduleList(_ScheduleList, total=False):
    """The answer of GET /v1/schedules."""

    nextPageToken: str


class Scope(TypedDict):
    """A tenant's workspace that has tasks or workers."""

    tenantId: str
    workspaceId: str


class _ScopeList(TypedDict):
    scopes: List[Scope]


class ScopeList(_ScopeList, total=False):
    """The answer of GET /v1/scopes."""

    nextPageToken: str


class SelectWorkerRequest(TypedDict, total=False):
    """The body of POST /v1/workers:select; all of it is optional."""

    labels: Optional[Dict[str, str]]
    queue: Optional[str]
    runtime: Optional[str]
    # LeastLoaded (the default), roundRobin or random.
    strategy: Optional[Literal["leastLoaded", "roundRobin", "random"]]
    type: Optional[str]


class SelectWorkerResponse(TypedDict):
    """The worker that a task would best be given to now."""

    # Considered workers are those of the queue.
    considered: int
    rejected: Rejected
    worker: Worker


class SilentSelector(TypedDict, total=False):
    """SilentSelector names workers, also by their silence."""

    labels: Dict[str, str]
    machineId: str
    queue: str
    # For how long they must have been silent, outages left out. One that is heard before its turn is left alone.
    silentForMs: int
    version: str


class _StartedRequest(TypedDict):
    # The attempt that the token was issued for.
    attempt: int


class StartedRequest(_StartedRequest, total=False):
    """The body of POST /v1/tasks/{taskId}/started."""

    # The worker's own time. It is kept and decides nothing.
    startedAt: Optional[str]
    # WorkerID names the worker.
    workerId: Optional[str]


class _StartedResponse(TypedDict):
    # Always true.
    acknowledged: bool
    # The store's clock.
    serverTime: str


class StartedResponse(_StartedResponse, total=False):
    """StartedResponse acknowledges a start."""

    # What whoever cancelled said.
    cancelReason: str
    # ShouldCancel asks the worker to stop; it is there only when true.
    shouldCancel: bool


class Stats(TypedDict):
    """The answer of GET /v1/stats."""

    # How close live tasks and workers came to their timeouts in the last hour, in the whole deployment; null: it was not sampled.
    beatGapRatio: Optional[BeatGapRatio]
    # The sum of the steps, of the whole deployment.
    lastHour: StatsCounts
    machines: MachineCounts
    # How long what sweepers should have taken first has been overdue, in the whole deployment.
    oldestOverdueMs: int
    # Those of the newest step, of the whole deployment.
    rates: StatsRates
    series: StatsSeries
    # By state.
    tasks: Dict[str, int]
    # TenantID and WorkspaceID say of what scope the levels are; null: of all.
    tenantId: Optional[str]
    # When it was counted, at most a second ago.
    time: str
    workers: WorkerLevels
    workspaceId: Optional[str]


class StatsCounts(TypedDict):
    """What has been counted in a time."""

    # Those that were accepted.
    beats: int
    claimedTasks: int
    # By what they got: tasks, nothing, refused.
    claims: Dict[str, int]
    # Refused beats by error code.
    refused: Dict[str, int]
    # Attempts that Lubdub ended, by reason.
    verdicts: Dict[str, int]


class StatsRates(TypedDict):
    """What goes on."""

    # How long all but one in a hundred beats took at most, estimated from a histogram; null: there were none.
    beatP99Ms: Optional[float]
    beatsPerSecond: float
    claimedTasksPerSecond: float
    claimsPerSecond: float
    refusedPerSecond: float
    # The age of the oldest overdue entry when sweepers last looked, the worst of them.
    sweepLagMs: int
    verdictsPerSecond: float


class StatsSeries(TypedDict):
    """What went on in the last hour, on all replicas."""

    # How long a step is.
    stepMs: int
    # In their order. Those in which no replica reported are left out.
    steps: List[StatsStep]


class StatsStep(TypedDict):
    """One step of a series."""

    # When it began.
    at: Optional[str]
    beatP99Ms: Optional[float]
    # Those that were accepted.
    beats: int
    claimedTasks: int
    # By what they got: tasks, nothing, refused.
    claims: Dict[str, int]
    # What there was in the whole deployment: null where nobody counted it, or where the token does not open all scopes that there
    # are.
    levels: Optional[Levels]
    # Refused beats by error code.
    refused: Dict[str, int]
    # How many have reported.
    replicas: int
    sweepLagMs: int
    # Attempts that Lubdub ended, by reason.
    verdicts: Dict[str, int]


class Summary(TypedDict):
    """All findings in one."""

    # Says whom the worst are about.
    about: Literal["us", "them", "both", "none"]
    # What is wrong, the worst first, and then how the deployment stands.
    message: str
    # That of the worst.
    severity: Literal["ok", "warn", "fail"]
    title: str


class SweepResponse(TypedDict):
    """The answer to POST /v1/system:sweep."""

    results: SweepResults
    success: bool


class SweepResults(TypedDict):
    """Says what a sweep did."""

    staleWorkers: SweptWorkers
    zombies: SweptTasks


class SweptTasks(TypedDict):
    """SweptTasks counts what a sweep did with tasks."""

    # DeletedCount finished tasks were past their retention.
    deletedCount: int
    # ReadyCount queued tasks had waited out their backoff.
    readyCount: int
    # RequeuedCount of both went back to their queues.
    requeuedCount: int
    success: bool
    # TimedOutCount were ended by another timeout or a deadline.
    timedOutCount: int
    # ZombieCount attempts were ended for their silence.
    zombieCount: int


class SweptWorkers(TypedDict):
    """SweptWorkers counts what a sweep did with workers."""

    # The machines, in the token's scope, of those that were marked OFFLINE.
    affectedMachineIds: List[str]
    # DeletedCount OFFLINE workers were past their retention.
    deletedCount: int
    # DrainedCount workers had finished what they held.
    drainedCount: int
    # MarkedOfflineCount workers had been silent for their timeout.
    markedOfflineCount: int
    # RecoveredCount attempts were taken from workers that have ended.
    recoveredCount: int
    success: bool


class System(TypedDict):
    """The answer of GET /v1/system."""

    brake: SystemBrake
    # DifferingSettings names the settings that are not the same on all replicas and should be.
    differingSettings: List[str]
    # What it rests on: failures first, then warnings, then what is well; of the same severity those about Lubdub and what it stands
    # on come before those about the workers and queues of the scope.
    findings: List[Finding]
    # The tasks of the scope that several workers ran when they were lost in the last hour, most workers first, 10 at most. It is
    # empty where the scope is not one workspace.
    poisonTasks: List[PoisonTask]
    # The workers of the scope that were lost in the last hour, newest first, 100 at most. It is empty where the scope is not one
    # workspace.
    recentlyLost: List[LostWorker]
    # How many were lost in the last hour, those included that are not listed.
    recentlyLostTotal: int
    reconciler: SystemReconciler
    # The servers that have shards.
    redis: List[SystemRedis]
    replicas: List[SystemReplica]
    shards: List[SystemShard]
    # Whether it is them or us, in a sentence.
    summary: Summary
    # When it was read, at most a second ago.
    time: str
    webhooks: SystemWebhooks


class SystemBrake(TypedDict):
    """The mass expiry brake of the replica that answers."""

    enabled: bool
    # How much it remembers: attempts and workers that it holds, and scopes that were released or told of.
    held: int
    sharePct: int


class SystemReconciler(TypedDict):
    """What the reconcilers of all replicas do."""

    examinedLastHour: int
    # How many entries they look at; 0: there is none.
    ratePerSecond: int
    repairedLastHour: int


class SystemRedis(TypedDict):
    """One Redis server. What it does not say is null."""

    # Null for the one inside a Lubdub process.
    address: Optional[str]
    appendOnly: bool
    # How far its clock is ahead of that of the replica that answers.
    clockOffsetMs: float
    # Says why it does not answer; null: it does.
    error: Optional[str]
    lastSaveAt: Optional[str]
    # What it may use; 0: as much as there is.
    maxMemoryBytes: int
    maxMemoryPolicy: Optional[str]
    memoryBytes: int
    # Connected to it.
    replicas: int
    role: Optional[str]
    roundTripMs: float
    version: Optional[str]


class SystemReplica(TypedDict):
    """One Lubdub process."""

    commit: Optional[str]
    # When it last said that it is there. One that is silent for 30 s is not shown any more.
    heardAt: Optional[str]
    replicaId: str
    roles: List[str]
    # When it started.
    since: Optional[str]
    version: str


class SystemShard(TypedDict):
    """One slice of the keyspace."""

    # In its stream; the oldest is of EventsAgeMs ago.
    events: int
    eventsAgeMs: int
    # How long what is overdue most has been so; 0: nothing is.
    lagMs: int
    # What outages of the last hour took out of everyone's silence.
    outageCreditMs: int
    # Ended workers whose attempts have not all been taken yet.
    recoveries: int
    shard: int
    # For how long its time has been standing still.
    stoppedMs: int
    # Sweeper looks after it first; null: nobody sweeps it.
    sweeper: Optional[str]


class SystemUnavailable(TypedDict):
    """The answer of GET /v1/system with status 503, while no Redis responds: what the server knows without it. Lists of replicas,
    shards, workers and tasks are empty and counts are 0, as nothing is known of them."""

    brake: SystemBrake
    # DifferingSettings names the settings that are not the same on all replicas and should be.
    differingSettings: List[str]
    # Store_unavailable.
    error: str
    # What it rests on: failures first, then warnings, then what is well; of the same severity those about Lubdub and what it stands
    # on come before those about the workers and queues of the scope.
    findings: List[Finding]
    # Says what happened and what to do about it.
    message: str
    # The tasks of the scope that several workers ran when they were lost in the last hour, most workers first, 10 at most. It is
    # empty where the scope is not one workspace.
    poisonTasks: List[PoisonTask]
    # The workers of the scope that were lost in the last hour, newest first, 100 at most. It is empty where the scope is not one
    # workspace.
    recentlyLost: List[LostWorker]
    # How many were lost in the last hour, those included that are not listed.
    recentlyLostTotal: int
    reconciler: SystemReconciler
    # The servers that have shards.
    redis: List[SystemRedis]
    replicas: List[SystemReplica]
    shards: List[SystemShard]
    # Whether it is them or us, in a sentence.
    summary: Summary
    # When it was read, at most a second ago.
    time: str
    webhooks: SystemWebhooks


class SystemWebhooks(TypedDict):
    """How the webhooks of all tenants do."""

    # How many pending deliveries were dropped since those of their tenant took too many bytes.
    droppedLastHour: int


class _Task(TypedDict):
    assetId: Optional[str]
    # The current attempt, 0 before the first dispatch.
    attempt: int
    cancelGracePeriodMs: int
    cancelReason: Optional[str]
    cancelRequested: bool
    # What the worker's own clock said when it completed the last attempt.
    completedAt: Optional[str]
    createdAt: str
    deadline: Optional[str]
    dispatchedAt: Optional[str]
    # Why the task FAILED or, while it is QUEUED for a retry, why the attempt before did: all that the worker said.
    error: Optional[Dict[str, Json]]
    # Counted against retry.maxAttempts.
    failures: int
    finishedAt: Optional[str]
    heartbeatIntervalMs: int
    # Null for a task that lives by its worker's beat.
    heartbeatTimeoutMs: Optional[int]
    # Has an entry for each ended attempt, oldest first; the newest 100 are kept.
    history: List[HistoryEntry]
    labels: Dict[str, str]
    # When the last beat was received, by the store's clock; while a task without a timeout of its own is RUNNING, its worker's, if
    # that is later. It is kept after the end.
    lastHeartbeatAt: Optional[str]
    # Null unless the task is RUNNING.
    liveness: Optional[Literal["FRESH", "LATE", "LOST"]]
    # Counted against retry.maxLosses.
    losses: int
    message: Optional[str]
    metrics: Optional[Dict[str, Json]]
    # The earliest time of the next dispatch, while QUEUED for a backoff or its notBefore.
    nextAttemptAt: Optional[str]
    output: Json
    progressPct: Optional[float]
    queue: Optional[str]
    # Why the task FAILED; TERMINATED where it was CANCELLED without waiting for its worker.
    reason: Optional[str]
    # What the worker's own clock said then.
    reportedHeartbeatAt: Optional[str]
    # Null for a task that is not retried by itself.
    retry: Optional[Retry]
    runId: str
    startedAt: Optional[str]
    state: Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    taskId: str
    taskKey: Optional[str]
    tenantId: str
    type: Optional[str]
    workerId: Optional[str]
    workspaceId: str


class Task(_Task, total=False):
    """The full view of one task."""

    cancelledDuringPhase: str
    notBefore: str
    partialProgress: Json
    # Payload and Resources are returned by GET /v1/tasks/{taskId} only.
    payload: Json
    resources: Dict[str, Json]
    # RetriesExhausted reports that a retry might have helped the task that FAILED, but its policy allows no more; absent otherwise,
    # as when the error was not retryable.
    retriesExhausted: bool
    runTimeoutMs: int
    runtime: str
    # The schedule that created the task; absent when none did.
    scheduleId: str
    # There when the task was given one.
    startTimeoutMs: int
    # The W3C trace context of the creation; absent when it had none.
    traceparent: str
    workerLabels: Dict[str, str]


class _TaskEnvelope(TypedDict):
    assetId: Optional[str]
    # Attempt numbers the tries at a task from 1. Every callback names it.
    attempt: int
    # Where the callbacks go: POST {callbackBaseUrl}/v1/tasks/{taskId}/heartbeat and so on.
    callbackBaseUrl: str
    # How long the worker has to stop once it was told of a cancel.
    cancelGracePeriodMs: int
    deadline: Optional[str]
    # When this attempt was handed out.
    enqueuedAt: str
    # How often to beat.
    heartbeatIntervalMs: int
    # The silence after which the attempt is dead; null: it lives by its worker's beat.
    heartbeatTimeoutMs: Optional[int]
    labels: Dict[str, str]
    # Payload as given at creation; null when none was.
    payload: Json
    queue: Optional[str]
    # Resources as given at creation; an empty object when none were.
    resources: Dict[str, Json]
    runId: str
    # DISPATCHED when the envelope is made.
    state: Literal["QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    taskId: str
    taskKey: Optional[str]
    # The bearer token of this very attempt.
    taskToken: str
    tenantId: str
    tokenExpiresAt: str
    # Type and Queue are null when the task has none.
    type: Optional[str]
    workspaceId: str


class TaskEnvelope(_TaskEnvelope, total=False):
    """What a worker needs to run one attempt and to report about it."""

    # What the attempt before this one reported last.
    lastProgress: Progress
    # RunTimeoutMs bounds the time from the attempt's start to its end; absent: the task has no bound of its own.
    runTimeoutMs: int
    # The schedule that created the task; absent when none did.
    scheduleId: str
    # The W3C trace context of the creation; absent when it had none.
    traceparent: str


class _TaskError(TypedDict):
    # One of the six.
    category: Literal["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"]


class TaskError(_TaskError, total=False):
    """A worker's account of a failure."""

    # For people.
    message: Optional[str]
    # Retryable reports whether a retry may help; absent: its category's default.
    retryable: Optional[bool]
    # For people.
    stackTrace: Optional[str]


class _TaskList(TypedDict):
    tasks: List[Task]
    # Null when the filter does not allow an exact count.
    totalCount: Optional[int]


class TaskList(_TaskList, total=False):
    """One page of GET /v1/tasks, in the order of task ids."""

    # Absent on the last page. It holds for the same filter only.
    nextPageToken: str


class TaskSelector(TypedDict, total=False):
    """TaskSelector names tasks; all that it says must match."""

    # FinishedAfter names finished tasks, by when they ended.
    finishedAfter: str
    labels: Dict[str, str]
    machineId: str
    queue: str
    # Why they ended.
    reason: str
    runId: str
    # The schedule that created them.
    scheduleId: str
    # One, or several with commas.
    state: str
    type: str
    workerId: str


class _UpdateWebhookRequest(TypedDict):
    events: List[str]
    # Where messages are posted to: https, and http where the deployment allows it.
    url: str


class UpdateWebhookRequest(_UpdateWebhookRequest, total=False):
    """The body of PUT /v1/webhooks/{webhookId}: all that the webhook says from now on."""

    description: Optional[str]
    # True unless said. While it is false nothing is collected for it, and what waits is given up.
    enabled: Optional[bool]
    machineId: Optional[str]
    queue: Optional[str]
    runId: Optional[str]
    subject: Optional[str]
    taskType: Optional[str]
    workerId: Optional[str]


class VerdictCounts(TypedDict):
    """The answer of GET /v1/stats/verdicts."""

    # Groups have the most first; beyond 100 they are left out.
    groups: List[VerdictGroup]
    # From when on verdicts were counted.
    since: Optional[str]
    # How many there are.
    total: int
    # Truncated reports that there are more than 100,000, or 10,000 where they are grouped by a label: the oldest are left out.
    truncated: bool


class _VerdictGroup(TypedDict):
    count: int
    # When the last of them fell.
    lastAt: Optional[str]


class VerdictGroup(_VerdictGroup, total=False):
    """How many verdicts have the same values of what was asked for. A value that there is none of, or that is not known any more,
    is empty."""

    # Those of their tasks that were asked for.
    labels: Dict[str, str]
    machineId: str
    queue: str
    reason: str
    type: str
    version: str
    workerId: str


class Version(TypedDict):
    """The body of /version."""

    # The version of Go that the server was built with.
    go: str
    name: str
    version: str


class _Webhook(TypedDict):
    createdAt: str
    # How many deliveries were given up, of those that are kept.
    dead: int
    disabledAt: Optional[str]
    # GONE, after a 410; FAILING, after five days of failures; OPERATOR; or null while it is on.
    disabledReason: Optional[str]
    enabled: bool
    # Types of events, such as task.failed, or families of them, such as task.*. At least one.
    events: List[str]
    # Since when nothing was received though it was tried.
    failingSince: Optional[str]
    # Managed webhooks come from the deployment's configuration and are changed there only.
    managed: bool
    # Until when older secrets sign too, null when none does.
    oldSecretsUntil: Optional[str]
    # How many deliveries wait or are under way.
    pending: int
    tenantId: str
    updatedAt: str
    url: str
    webhookId: str
    workspaceId: str


class Webhook(_Webhook, total=False):
    """Where events are posted to."""

    description: str
    machineId: str
    queue: str
    runId: str
    # There in the answer that it was made for, and never again.
    secret: str
    # Subject, a task, worker or machine, is the only one that it is told of; absent: all are. The same for the rest.
    subject: str
    taskType: str
    workerId: str


class WebhookDelivery(TypedDict):
    """One message on its way to a webhook."""

    # How often it was tried; after ten it is DEAD.
    attempts: int
    createdAt: str
    deliveryId: str
    # The event that it tells of; null: none, it is about the webhook itself.
    eventId: Optional[str]
    lastAttemptAt: Optional[str]
    # The webhook-id that it is sent with, the same at each try.
    messageId: str
    nextAttemptAt: Optional[str]
    # What the last try came to; null: there was none.
    response: Optional[WebhookResponse]
    status: Literal["PENDING", "DELIVERED", "DEAD"]
    subject: Optional[str]
    type: str


class _WebhookDeliveryList(TypedDict):
    # Deliveries stand newest first.
    deliveries: List[WebhookDelivery]


class WebhookDeliveryList(_WebhookDeliveryList, total=False):
    """The answer of GET /v1/webhooks/{webhookId}/deliveries."""

    nextPageToken: str


class _WebhookList(TypedDict):
    totalCount: int
    webhooks: List[Webhook]


class WebhookList(_WebhookList, total=False):
    """The answer of GET /v1/webhooks."""

    nextPageToken: str


class WebhookResponse(TypedDict):
    """What a try came to."""

    # The beginning of the answer's, at most 1 KiB.
    body: str
    # Says why there was no answer.
    error: Optional[str]
    # That of the answer; null: there was none.
    status: Optional[int]
    # How long it took.
    tookMs: int


class Worker(TypedDict):
    """One registered worker."""

    # What it said with its last beat.
    activeCount: int
    # There while the worker takes nothing new; it is independent of the status.
    cordon: Optional[WorkerCordon]
    deregisteredAt: Optional[str]
    drainDeadline: Optional[str]
    # Why it is OFFLINE: HEARTBEAT_TIMEOUT, SUPERSEDED, DEREGISTERED, DRAINED, DRAIN_DEADLINE or FORCED_OFFLINE.
    endReason: Optional[str]
    flapping: bool
    heartbeatIntervalMs: int
    heartbeatTimeoutMs: int
    # How many attempts it holds.
    heldCount: int
    # There while the worker is held offline: registrations of its identity are refused until it is resumed.
    hold: Optional[Hold]
    hostname: Optional[str]
    labels: Dict[str, str]
    # LastHeartbeatAgeMs does not count outages.
    lastHeartbeatAgeMs: Optional[int]
    lastHeartbeatAt: Optional[str]
    # Computed from the last beat whenever it is asked for, also of a worker that is OFFLINE.
    liveness: Literal["FRESH", "LATE", "LOST"]
    machineId: str
    maxConcurrent: int
    name: Optional[str]
    pid: Optional[int]
    # How many queued tasks are meant for it.
    placedCount: int
    queue: str
    registeredAt: str
    runtimes: List[str]
    # Schedulable reports whether it would be selected now.
    schedulable: bool
    # How often it, or another registration with the same queue, machine and name, went stale in the last 24 h, up to 1,000.
    # Flapping says that this is at least the server's flapping-threshold.
    staleCount24h: int
    status: Literal["ONLINE", "DRAINING", "OFFLINE"]
    # What was given as the reason of its drain or of its end. That of a drain stays when the worker ends DRAINED, DRAIN_DEADLINE or
    # DEREGISTERED and nothing else was given; where nothing was, it is the same as endReason.
    statusReason: Optional[str]
    tenantId: str
    # How many attempts its heartbeats reported as completed. GET /v1/tasks with its workerId lists what ended on it.
    totalCompleted: int
    # How many attempts its heartbeats reported as failed.
    totalFailed: int
    types: List[str]
    # The filters of a selection that it fails: status, cordoned, stale, full.
    unschedulableReasons: List[str]
    # The share of the last 24 h, or since it is known, in which it or an earlier registration with the same queue, machine and name
    # was alive; once OFFLINE, as it was at its end. Time after a planned end is not counted as downtime: DEREGISTERED, DRAINED,
    # DRAIN_DEADLINE, SUPERSEDED or FORCED_OFFLINE.
    uptimePct24h: float
    version: Optional[str]
    workerId: str
    workspaceId: str


class WorkerCordon(TypedDict):
    """The cordon of a worker, which lasts until the worker is uncordoned or ends. Whoever registers in its place inherits it."""

    reason: Optional[str]
    since: Optional[str]


class WorkerHeartbeatRequest(TypedDict, total=False):
    """The body of POST /v1/workers/{workerId}/heartbeat; all of it is optional."""

    # How many tasks it works on. Those that it did not claim count as load when workers are selected.
    activeCount: Optional[int]
    # How many tasks it completed since the last beat that was answered.
    completedDelta: Optional[int]
    # How many failed since then.
    failedDelta: Optional[int]
    # Seq rises from beat to beat; required with deltas. A repeated one adds nothing, and the inventory of one that is not higher
    # than the last takes nothing from the worker.
    seq: Optional[int]
    # All the attempts that it has, if it lists them: at most its maxConcurrent, and 1,000 that have ended without its knowing. An
    # attempt that two beats in a row miss is lost.
    tasks: Optional[List[WorkerTaskItem]]


class _WorkerHeartbeatResponse(TypedDict):
    accepted: bool
    # Attempts to stop gracefully. They are repeated until their delivery is recorded.
    cancelTasks: List[CancelTask]
    heartbeatIntervalMs: int
    heartbeatTimeoutMs: int
    # Attempts that are not the worker's any more; it must stop them at once.
    lostTasks: List[LostTask]
    serverTime: str
    # ShouldDrain asks the worker to claim nothing more, to finish what it holds and to deregister.
    shouldDrain: bool


class WorkerHeartbeatResponse(_WorkerHeartbeatResponse, total=False):
    """The answer to a worker's beat."""

    # When what it still holds is handed to others.
    drainDeadline: str
    tokenExpiresAt: str
    # A fresh one, in the last third of the old one's life.
    workerToken: str


class WorkerLevels(TypedDict):
    """Workers by status, and those that are not OFFLINE by liveness."""

    draining: int
    fresh: int
    late: int
    lost: int
    offline: int
    online: int


class _WorkerList(TypedDict):
    totalCount: int
    workers: List[Worker]


class WorkerList(_WorkerList, total=False):
    """One page of workers, in the order of registration."""

    nextPageToken: str


class WorkerSelector(TypedDict, total=False):
    """WorkerSelector names workers."""

    labels: Optional[Dict[str, str]]
    machineId: Optional[str]
    queue: Optional[str]
    version: Optional[str]


class _WorkerTaskItem(TypedDict):
    attempt: int
    taskId: str


class WorkerTaskItem(_WorkerTaskItem, total=False):
    """One attempt in a worker's inventory."""

    # Says it in words.
    message: Optional[str]
    # How far it has come, 0 to 100.
    progressPct: Optional[float]


class NoFields(TypedDict, total=False):
    """It has no fields."""
