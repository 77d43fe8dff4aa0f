"""The bodies of all calls, as api/openapi.json describes them. Written by tools/generate.py; change it there."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

# Any JSON value.
Json = Any


class _ActOnTasksResponse(TypedDict):
    # How many of them were changed, or already were as requested; 0 with dryRun.
    done: int
    # The number of tasks on this page.
    matched: int
    # Refused counts the others by the error code that each would have got on its own.
    refused: Dict[str, int]


class ActOnTasksResponse(_ActOnTasksResponse, total=False):
    """ActOnTasksResponse counts what was done to one page of the tasks that a selector matches."""

    # The next page; absent: this was the last. It is valid for the same operation and selector only.
    nextPageToken: str
    # How many of them would be changed, with dryRun only: by a cancel those that have not ended, by a retry those that are FAILED.
    wouldDo: int


class _ActOnWorkersRequest(TypedDict):
    # Selector selects workers that match all of its fields; it must have at least one.
    selector: WorkerSelector


class ActOnWorkersRequest(_ActOnWorkersRequest, total=False):
    """The body of POST /v1/workers:cordon, :uncordon and :resume."""

    # DryRun only counts.
    dryRun: Optional[bool]
    # Recorded in the events; that of a cordon is shown with the workers.
    reason: Optional[str]


class ActOnWorkersResponse(TypedDict):
    """ActOnWorkersResponse counts the workers that were changed."""

    # How many of them are now as requested.
    done: int
    dryRun: bool
    # Matched workers are ONLINE or DRAINING and match the selector. A selector without matches is 404, except with dryRun or for
    # OFFLINE.
    matched: int
    # WorkerIDs of those that match.
    workerIds: List[str]


class AskedFire(TypedDict):
    """One manual or backfill fire."""

    fireAt: str
    taskId: str


class AskedFires(TypedDict):
    """Recorded manual or backfill fires. Their tasks are created within moments, each once."""

    # Ordered by time.
    fires: List[AskedFire]
    scheduleId: str
    # How many older ones exceed maxCatchup, or would create more than 64 MiB of tasks together.
    skipped: int


class AttemptProgress(TypedDict, total=False):
    """What an attempt reports about its progress."""

    # Its checkpoint, as in its own heartbeats.
    details: Json
    # Message describes the progress.
    message: str
    # Its progress, 0 to 100.
    progressPct: float


BackfillRequest = TypedDict("BackfillRequest", {"from": 'str', "to": 'str'}, total=True)


class BeatGapRatio(TypedDict):
    """The time between two heartbeats of a live task or worker, divided by its heartbeat timeout: at 1 it would have timed out. It
    is estimated from a histogram."""

    # Which of task and worker came closer to its timeout; the numbers are about that one.
    kind: str
    # An upper bound of all gaps, to a tenth.
    max: float
    # P50 and P99 are the 50th and 99th percentile of the gaps.
    p50: float
    p99: float
    # The number of gaps measured.
    samples: int


class CancelRequest(TypedDict, total=False):
    """The body of POST /v1/tasks/{taskId}/cancel and POST /v1/runs/{runId}/cancel."""

    # How long a worker has to stop after it was notified; absent: the task's cancelGracePeriodMs. 0 ends the task at once,
    # CANCELLED by TERMINATED, whether or not its worker was notified. Of several requests the last one with a value counts.
    gracePeriodMs: Optional[int]
    # Passed to the worker as cancelReason.
    reason: Optional[str]


class CancelTask(TypedDict):
    """An attempt to stop gracefully."""

    attempt: int
    reason: Optional[str]
    taskId: str


class _CancelTasksRequest(TypedDict):
    # Selector selects the tasks; it must have at least one field.
    selector: TaskSelector


class CancelTasksRequest(_CancelTasksRequest, total=False):
    """The body of POST /v1/tasks:cancel."""

    # DryRun only counts the tasks that match, and those that would be changed.
    dryRun: Optional[bool]
    # How long a worker has to stop after it was notified; absent: the task's cancelGracePeriodMs. 0 ends the task at once,
    # CANCELLED by TERMINATED, whether or not its worker was notified. Of several requests the last one with a value counts.
    gracePeriodMs: Optional[int]
    # The nextPageToken of the previous answer.
    pageToken: Optional[str]
    # Passed to the worker as cancelReason.
    reason: Optional[str]


class ChangeScheduleRequest(TypedDict, total=False):
    """The body of PUT and PATCH /v1/schedules/{scheduleId}. With PUT what is absent gets its default, and cron and task are
    required; with PATCH it stays as it is."""

    # When it fires, as in its creation. Fires missed since the last one are caught up.
    cron: Optional[str]
    # How many missed fires are caught up.
    maxCatchup: Optional[int]
    # Allow or skip.
    overlap: Optional[Literal["allow", "skip"]]
    # What each fire creates from now on, as a whole.
    task: Optional[CreateTaskRequest]


class _ClaimError(TypedDict):
    error: str
    message: str
    status: int


class ClaimError(_ClaimError, total=False):
    """The refusal of a claim: Status is the HTTP status that the claim would have got on its own."""

    # The field that is wrong.
    field: str
    # Why the worker is OFFLINE.
    reason: str
    # Set with status 429 and 503.
    retryAfterMs: int


class ClaimRequest(TypedDict, total=False):
    """The body of POST /v1/queues/{queue}/claim."""

    # ClaimID makes a repeat safe: the same id gets the same tasks again, without those that are done.
    claimId: Optional[str]
    # The maximum number of tasks. Default 1; a claim gets at most 100.
    max: Json
    # Start declares that the worker starts the tasks when it gets them: they are RUNNING in the answer, and their start needs no
    # request. A server that does not know this field returns them as DISPATCHED; the worker must then report each start.
    start: Optional[bool]
    # Types limits the claim to these task types, which the worker must have registered. Absent: all of them, and tasks without a
    # type.
    types: Optional[List[str]]
    # How long to wait for the first task. Default 0: not at all.
    waitMs: Optional[int]


class ClaimResponse(TypedDict):
    """Has the claimed tasks; none if none became available in time."""

    tasks: List[TaskEnvelope]


class _CompletedRequest(TypedDict):
    # The attempt that the token was issued for.
    attempt: int
    # How the attempt ended.
    outcome: Literal["SUCCEEDED", "FAILED", "CANCELLED", "SNOOZED"]


class CompletedRequest(_CompletedRequest, total=False):
    """The body of POST /v1/tasks/{taskId}/completed."""

    # The phase that a cancel interrupted.
    cancelledDuringPhase: Optional[str]
    # The worker's own time. It is kept and shown, and decides nothing.
    completedAt: Optional[str]
    # How long to wait before the next attempt, 0 to 31,622,400,000 (366 days). SNOOZED needs it; other outcomes have none.
    delayMs: Optional[int]
    # The failure; FAILED needs its category. It is kept as it is, with any further fields, but retryable is added if absent.
    error: Optional[TaskError]
    # Any JSON object; it is kept as it is.
    metrics: Optional[Dict[str, Json]]
    # Any JSON value; it is kept as it is.
    output: Json
    # Any JSON value that describes the progress before the cancel.
    partialProgress: Json
    # WorkerID names the worker.
    workerId: Optional[str]


class _CompletedResponse(TypedDict):
    # Always true.
    acknowledged: bool
    # This attempt's outcome, which may be SNOOZED.
    finalState: Literal["SUCCEEDED", "FAILED", "CANCELLED", "SNOOZED"]
    # The store's clock.
    serverTime: str


class CompletedResponse(_CompletedResponse, total=False):
    """CompletedResponse acknowledges a completion. The same completion again gets the same answer."""

    # Its number.
    nextAttempt: int
    # WillRetry reports that another attempt follows.
    willRetry: bool


class _CompletionResult(TypedDict):
    # 200, or a status of the error table.
    status: int
    taskId: str


class CompletionResult(_CompletionResult, total=False):
    """The result of one completion: Status is the HTTP status that the completion would have got on its own, and the fields are
    those of its answer."""

    # The fields of CompletedResponse, with status 200.
    acknowledged: bool
    # The fields of Error, with any other status.
    error: str
    expectedAttempt: int
    field: str
    finalState: Literal["SUCCEEDED", "FAILED", "CANCELLED", "SNOOZED"]
    message: str
    nextAttempt: int
    reason: str
    receivedAttempt: int
    # Set with status 429 and 503.
    retryAfterMs: int
    serverTime: str
    state: Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    willRetry: bool


class _CreateScheduleRequest(TypedDict):
    # When it fires, in UTC: [seconds] minutes hours day-of-month month day-of-week, or these six and a year. Days of the week are 1
    # to 7 with 1 = SUN, or names; both day fields must match, and ? in one of them is any day; years are 1970 to 2100. Five fields
    # fire at second 0 and are returned as six; they are accepted if they mean the same as in crontab, so days of the week are
    # names.
    cron: str
    # What each fire creates, as in POST /v1/tasks: with a queue, and without taskId, deadline, runAt, delayMs and traceparent.
    task: Optional[CreateTaskRequest]


class CreateScheduleRequest(_CreateScheduleRequest, total=False):
    """The body of POST /v1/schedules."""

    # How many missed fires are caught up, the newest: 0 to 1,000. Default 100.
    maxCatchup: Optional[int]
    # What a fire does while the previous task is not finished: allow (the default) creates its task, skip does not.
    overlap: Optional[Literal["allow", "skip"]]
    # ScheduleID names the schedule within its scope; absent: Lubdub generates one.
    scheduleId: Optional[str]
    # Half of the scope; absent: the query's, else the token's.
    tenantId: Optional[str]
    # The other half.
    workspaceId: Optional[str]


class CreateTaskRequest(TypedDict, total=False):
    """The body of POST /v1/tasks. Without a queue the task is dispatched at once and the answer is its TaskEnvelope. With a queue
    it waits until a worker claims it."""

    # The caller's own id of the result.
    assetId: Optional[str]
    # How long the worker has after it was notified of a cancel. Default 30,000.
    cancelGracePeriodMs: Optional[int]
    # Deadline fails the task with DEADLINE_EXCEEDED when it passes.
    deadline: Optional[str]
    # The time from the creation to the first claim at the earliest, 0 to 31,622,400,000 (366 days), instead of runAt.
    delayMs: Optional[int]
    # How often the worker should send heartbeats. Default 30,000.
    heartbeatIntervalMs: Optional[int]
    # How long an attempt may be silent: at least twice the interval, rounded up to two significant digits. Default 90,000; a queue
    # task without one depends on its worker's heartbeat.
    heartbeatTimeoutMs: Optional[int]
    # Up to 64 pairs to find the task by.
    labels: Optional[Dict[str, str]]
    # Another name of runAt.
    notBefore: Optional[str]
    # Any JSON value for the worker.
    payload: Json
    # Placement chooses a worker at creation. Queue tasks only.
    placement: Optional[Placement]
    # Where the task waits; absent: it is dispatched at once.
    queue: Optional[str]
    # RenewToken lets heartbeats renew the token. Default true; with false the token must cover the deadline.
    renewToken: Optional[bool]
    # Any JSON object; it is part of the envelope.
    resources: Optional[Dict[str, Json]]
    # How often the task is retried. Queue tasks only.
    retry: Optional[RetryPolicy]
    # The earliest time of the first claim; until then the task is SCHEDULED. Queue tasks only.
    runAt: Optional[str]
    # RunID groups tasks; absent: a run with this task only.
    runId: Optional[str]
    # RunTimeoutMs bounds the time from an attempt's start to its end, rounded up to two significant digits; absent: no bound.
    runTimeoutMs: Optional[int]
    # Runtime that a worker must have. Queue tasks only.
    runtime: Optional[str]
    # StartTimeoutMs bounds the time from dispatch to the start, rounded up to two significant digits. Default 60,000 after a claim;
    # without a queue the life of the token.
    startTimeoutMs: Optional[int]
    # TaskID names the task within its scope; absent: Lubdub generates one. Ids that begin with fire_ are reserved for the tasks of
    # schedules.
    taskId: Optional[str]
    # The caller's own name for the work.
    taskKey: Optional[str]
    # Half of the scope; absent: the query's, else the token's.
    tenantId: Optional[str]
    # The life of the task token, 1 to 7,200. Default 3,600, or as long as the deadline needs.
    tokenTtlSeconds: Optional[int]
    # The W3C trace context that the task belongs to; absent: the header's. It is in the envelope and in the task's events.
    traceparent: Optional[str]
    # The kind of work; workers register for types.
    type: Optional[str]
    # WorkerID pins the task to one worker, which must exist. Queue tasks only.
    workerId: Optional[str]
    # WorkerLabels that a worker must have. Queue tasks only.
    workerLabels: Optional[Dict[str, str]]
    # The other half.
    workspaceId: Optional[str]


class CreateTasksItem(TypedDict, total=False):
    """One creation in a batch."""

    # The caller's own id of the result.
    assetId: Optional[str]
    # How long the worker has after it was notified of a cancel. Default 30,000.
    cancelGracePeriodMs: Optional[int]
    # Deadline fails the task with DEADLINE_EXCEEDED when it passes.
    deadline: Optional[str]
    # The time from the creation to the first claim at the earliest, 0 to 31,622,400,000 (366 days), instead of runAt.
    delayMs: Optional[int]
    # How often the worker should send heartbeats. Default 30,000.
    heartbeatIntervalMs: Optional[int]
    # How long an attempt may be silent: at least twice the interval, rounded up to two significant digits. Default 90,000; a queue
    # task without one depends on its worker's heartbeat.
    heartbeatTimeoutMs: Optional[int]
    # For this item what the header of the same name is for POST /v1/tasks.
    idempotencyKey: Optional[str]
    # Up to 64 pairs to find the task by.
    labels: Optional[Dict[str, str]]
    # Another name of runAt.
    notBefore: Optional[str]
    # Any JSON value for the worker.
    payload: Json
    # Placement chooses a worker at creation. Queue tasks only.
    placement: Optional[Placement]
    # Where the task waits; absent: it is dispatched at once.
    queue: Optional[str]
    # RenewToken lets heartbeats renew the token. Default true; with false the token must cover the deadline.
    renewToken: Optional[bool]
    # Any JSON object; it is part of the envelope.
    resources: Optional[Dict[str, Json]]
    # How often the task is retried. Queue tasks only.
    retry: Optional[RetryPolicy]
    # The earliest time of the first claim; until then the task is SCHEDULED. Queue tasks only.
    runAt: Optional[str]
    # RunID groups tasks; absent: a run with this task only.
    runId: Optional[str]
    # RunTimeoutMs bounds the time from an attempt's start to its end, rounded up to two significant digits; absent: no bound.
    runTimeoutMs: Optional[int]
    # Runtime that a worker must have. Queue tasks only.
    runtime: Optional[str]
    # StartTimeoutMs bounds the time from dispatch to the start, rounded up to two significant digits. Default 60,000 after a claim;
    # without a queue the life of the token.
    startTimeoutMs: Optional[int]
    # TaskID names the task within its scope; absent: Lubdub generates one. Ids that begin with fire_ are reserved for the tasks of
    # schedules.
    taskId: Optional[str]
    # The caller's own name for the work.
    taskKey: Optional[str]
    # Half of the scope; absent: the query's, else the token's.
    tenantId: Optional[str]
    # The life of the task token, 1 to 7,200. Default 3,600, or as long as the deadline needs.
    tokenTtlSeconds: Optional[int]
    # The W3C trace context that the task belongs to; absent: the header's. It is in the envelope and in the task's events.
    traceparent: Optional[str]
    # The kind of work; workers register for types.
    type: Optional[str]
    # WorkerID pins the task to one worker, which must exist. Queue tasks only.
    workerId: Optional[str]
    # WorkerLabels that a worker must have. Queue tasks only.
    workerLabels: Optional[Dict[str, str]]
    # The other half.
    workspaceId: Optional[str]


class CreateTasksRequest(TypedDict):
    """The body of POST /v1/tasks:batch."""

    # 1 to 1,000 creations; each has its own result.
    tasks: List[CreateTasksItem]


class CreateTasksResponse(TypedDict):
    """Has one result for each creation, in the same order: the body that the creation alone would have got (a TaskEnvelope, a Task
    or an Error) with its HTTP status as "status"."""

    results: List[Union[TaskEnvelope, Task, Error]]


class CreateTokenRequest(TypedDict, total=False):
    """The body of POST /v1/tokens."""

    # Role must have no more rights than the request's own token; absent: the same role.
    role: Optional[Literal["viewer", "submitter", "operator", "dispatcher", "enroll", "admin"]]
    # How long the token is valid, in whole seconds, and no longer than the request's own; absent: an hour.
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
    # The bearer, as in the request's own token.
    subject: str


class _CreateWebhookRequest(TypedDict):
    events: List[str]
    # Where messages are posted: https, and http if the deployment allows it.
    url: str


class CreateWebhookRequest(_CreateWebhookRequest, total=False):
    """The body of POST /v1/webhooks."""

    description: Optional[str]
    # True by default. While it is false no events are collected for it, and pending deliveries are dropped.
    enabled: Optional[bool]
    machineId: Optional[str]
    queue: Optional[str]
    runId: Optional[str]
    # Secret signs its messages: whsec_ and the base64 of 24 to 64 bytes. Absent: one is generated.
    secret: Optional[str]
    subject: Optional[str]
    taskType: Optional[str]
    # WebhookID names it; absent: one is generated.
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

    # Drain lets it finish its tasks first; otherwise it is OFFLINE at once and its tasks go to other workers.
    drain: Optional[bool]
    # Shown with the worker.
    reason: Optional[str]


class DrainRequest(TypedDict, total=False):
    """The body of the drain of one worker or machine."""

    # How long until remaining tasks go to other workers; absent: never.
    deadlineMs: Optional[int]
    # Shown with the worker.
    reason: Optional[str]


class _DrainWorkersRequest(TypedDict):
    # Selector selects workers that match all of its fields; it must have at least one.
    selector: WorkerSelector


class DrainWorkersRequest(_DrainWorkersRequest, total=False):
    """The body of POST /v1/workers:drain."""

    # How long until remaining tasks go to other workers; absent: never.
    deadlineMs: Optional[int]
    # DryRun only counts.
    dryRun: Optional[bool]
    # Shown with the worker.
    reason: Optional[str]


class DrainWorkersResponse(TypedDict):
    """DrainWorkersResponse counts the drained workers."""

    # How many of them are DRAINING now.
    draining: int
    dryRun: bool
    # Matched workers are ONLINE or DRAINING and match the selector. A selector without matches is 404, except with dryRun.
    matched: int
    # WorkerIDs of those that match.
    workerIds: List[str]


class _Error(TypedDict):
    # One of the codes.
    error: str
    # Message describes what happened and what to do about it.
    message: str


class Error(_Error, total=False):
    """The body of every refusal."""

    # How many workers a selection considered.
    considered: int
    # The task's current attempt.
    expectedAttempt: int
    # The field, parameter or header that is wrong, as a path such as retry.maxAttempts.
    field: str
    # The machine whose hold refuses the registration.
    machineId: str
    # Why Lubdub ended the attempt, why the worker is OFFLINE, or the reason given for the hold.
    reason: str
    # The attempt that the call was for.
    receivedAttempt: int
    # How many of them each filter removed.
    rejected: Rejected
    # The command that lifts the hold.
    remedy: str
    # Given with a 500 only; every answer has it in its X-Request-Id header.
    requestId: str
    # The task's state.
    state: Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    # The worker whose hold refuses the registration.
    workerId: str


class ErrorGroup(TypedDict):
    """How many attempts ended in the same way."""

    count: int
    # The outcome with its reason, or with the category and the message that the worker reported.
    error: str


class _Event(TypedDict):
    # Further data, such as a verdict's evidence.
    data: Json
    # ID identifies the event: a repeated event has the same.
    id: str
    # When.
    time: str
    # The type of the event, such as task.zombie.
    type: str


class Event(_Event, total=False):
    """One event. Fields that do not apply are absent."""

    # The number of the task's attempt.
    attempt: int
    # Who did it: the subject of a token, a worker, a sweeper or a replica.
    by: str
    # The reason of a verdict or an end, such as HEARTBEAT_TIMEOUT.
    cause: str
    # That worker's machine, or the machine that the event is about.
    machineId: str
    # The task's or the worker's.
    queue: str
    # The task's run.
    runId: str
    # The task, worker, machine or other object that it is about.
    subject: str
    # The task's type.
    taskType: str
    # TenantID and WorkspaceID are absent in events about the whole deployment.
    tenantId: str
    # The W3C trace context of the task's creation.
    traceparent: str
    # That worker's version.
    version: str
    # The worker that has the attempt or had it last, or that the event is about.
    workerId: str
    workspaceId: str


EventGap = TypedDict("EventGap", {"from": 'str', "shards": 'List[int]', "to": 'str'}, total=True)


class _EventList(TypedDict):
    # Ordered by time; those about one subject in the order in which they happened.
    events: List[Event]
    # More reports whether there may be more events now. A page reads at most 5,000 events, so with a selective filter it may be
    # short or empty although there are more; false: all stored events were read.
    more: bool
    # The cursor of the next page, as after, even if there are no more events now.
    next: str


class EventList(_EventList, total=False):
    """A page of GET /v1/events."""

    # Gap reports that events between after and the first of these are no longer stored.
    gap: EventGap


class _Evidence(TypedDict):
    detectedAt: str
    # How long after the timeout the verdict came.
    detectionLagMs: int
    # Null if no heartbeat was received.
    lastHeartbeatAt: Optional[str]
    # The excluded time since the last heartbeat.
    outageCreditMs: int
    # The silence that counted: time during which no heartbeat could be stored is excluded.
    silentMs: int
    # Sweeper names the process that found it; each has one name.
    sweeper: str
    # What was exceeded.
    timeoutMs: int


class Evidence(_Evidence, total=False):
    """Evidence answers "why was it killed?"."""

    # MassExpiryHeld reports that the mass-expiry brake had held it, so that it had a second timeout period.
    massExpiryHeld: bool
    # Why an attempt was lost with its worker: that worker's statusReason, or NOT_IN_INVENTORY if it is alive and two of its
    # inventories in a row did not list the attempt. The times above are then the worker's.
    workerReason: str


class _ExchangeCompletion(TypedDict):
    # The attempt that the token was issued for.
    attempt: int
    # How the attempt ended.
    outcome: Literal["SUCCEEDED", "FAILED", "CANCELLED", "SNOOZED"]
    taskId: str


class ExchangeCompletion(_ExchangeCompletion, total=False):
    """The result of one attempt."""

    # The phase that a cancel interrupted.
    cancelledDuringPhase: str
    # The worker's own time. It is kept and shown, and decides nothing.
    completedAt: str
    # How long to wait before the next attempt, 0 to 31,622,400,000 (366 days). SNOOZED needs it; other outcomes have none.
    delayMs: int
    # The failure; FAILED needs its category. It is kept as it is, with any further fields, but retryable is added if absent.
    error: TaskError
    # Any JSON object; it is kept as it is.
    metrics: Optional[Dict[str, Json]]
    # Any JSON value; it is kept as it is.
    output: Json
    # Any JSON value that describes the progress before the cancel.
    partialProgress: Json
    # Stored before the result. It needs the seq of the request.
    progress: AttemptProgress
    # WorkerID names the worker.
    workerId: str


class ExchangeRequest(TypedDict, total=False):
    """The body of POST /v1/workers/{workerId}/exchange. It needs seq, completed or claim."""

    # ActiveCount, CompletedDelta and FailedDelta are as in the worker's heartbeat. They need seq.
    activeCount: Optional[int]
    # Claim claims tasks of the worker's queue. It waits as long as the answer to the heartbeat may: at most until the next one is
    # due.
    claim: Optional[ClaimRequest]
    # At most 100 results of attempts that were dispatched to the worker.
    completed: Optional[List[ExchangeCompletion]]
    completedDelta: Optional[int]
    failedDelta: Optional[int]
    # Inventory lists all its attempts, as tasks does in the worker's heartbeat; absent: they are not listed. Those in completed and
    # in progress count as listed. It needs seq.
    inventory: Optional[List[WorkerTaskItem]]
    # That of at most 1,000 of its attempts, which are kept alive by it. It needs seq.
    progress: Optional[List[WorkerTaskItem]]
    # Seq makes the request a heartbeat of the worker, and is its number: it increases from heartbeat to heartbeat.
    seq: Optional[int]


class _ExchangeResponse(TypedDict):
    # Has one entry for each completion, in the same order.
    completed: List[CompletionResult]
    # The claimed ones; none without a claim.
    tasks: List[TaskEnvelope]


class ExchangeResponse(_ExchangeResponse, total=False):
    """ExchangeResponse answers an exchange. The same request again gets the same results and the same tasks."""

    # Why the claim was refused, which does not affect the rest; absent: it was not.
    claimError: ClaimError
    # That of the claim.
    claimId: str
    # The answer to the heartbeat; absent without seq.
    heartbeat: WorkerHeartbeatResponse


class FailureGroup(TypedDict):
    """How many attempts of tasks of one queue and type failed with similar errors."""

    # How many failed in the last hour, and LastFiveMinutes in its last five minutes.
    count: int
    # The category and the first line of the message, 160 bytes at most, with … for each word that has digits. It is empty if the
    # worker gave neither.
    error: str
    firstAt: Optional[str]
    lastAt: Optional[str]
    lastFiveMinutes: int
    queue: Optional[str]
    # Set in the first group, if all its failures are of one version, and so few of the workers that could run its tasks have it
    # that this is not by chance.
    suspectVersion: Optional[SuspectVersion]
    # The task that failed last.
    taskId: str
    type: Optional[str]
    # Those of the workers, the one with the most failures first, 5 at most.
    versions: List[str]


class Failures(TypedDict):
    """Attempts that workers reported as FAILED."""

    # Groups have those with the most failures of the last five minutes first, then those with the most of the hour, 20 at most.
    groups: List[FailureGroup]
    lastFiveMinutes: int
    # How many tasks succeeded in the last five minutes.
    succeeded: int
    # How many there were in the last hour, and LastFiveMinutes in its last five minutes.
    total: int
    # Truncated reports that there were more in the last hour: 1,000 are counted in each shard, the newest.
    truncated: bool


class _Finding(TypedDict):
    about: Literal["us", "them", "both", "none"]
    # Code names the check, such as redis-policy.
    code: str
    # Message describes the result in a sentence.
    message: str
    severity: Literal["ok", "warn", "fail"]


class Finding(_Finding, total=False):
    """The result of one check. It is readable text: messages may change, codes do not."""

    # What to do about it; absent if nothing is wrong.
    remedy: str


class FiredResponse(TypedDict):
    """The answer of POST /v1/schedules/{scheduleId}/fire."""

    fireAt: str
    scheduleId: str
    taskId: str


class _Health(TypedDict):
    # Ok; degraded: the store is in trouble, but this server should still get work; or draining: it should not.
    status: str


class Health(_Health, total=False):
    """The body of /livez, /readyz and /healthz."""

    # What is wrong if the status is not ok.
    message: str
    # What to do about it if the status is not ok.
    next: str


class _HeartbeatItem(TypedDict):
    # The attempt that the token was issued for.
    attempt: int
    # TaskID names the task.
    taskId: str


class HeartbeatItem(_HeartbeatItem, total=False):
    """One heartbeat in a batch."""

    # A checkpoint: any JSON of at most 16 KiB without whitespace, for the next attempt's lastProgress; absent: as before.
    details: Json
    # The worker's own time. It is kept and shown; liveness depends on the time of receipt.
    heartbeatAt: Optional[str]
    # Free text about the progress, cut at 1,024 bytes of JSON text; absent: as before.
    message: Optional[str]
    # Any number from 0 to 100; absent: as before.
    progressPct: Optional[float]
    # Valid for this heartbeat only; absent: the worker's token of the request is used.
    taskToken: Optional[str]
    # WorkerID names the worker.
    workerId: Optional[str]


class _HeartbeatRequest(TypedDict):
    # The attempt that the token was issued for.
    attempt: int


class HeartbeatRequest(_HeartbeatRequest, total=False):
    """The body of POST /v1/tasks/{taskId}/heartbeat."""

    # A checkpoint: any JSON of at most 16 KiB without whitespace, for the next attempt's lastProgress; absent: as before.
    details: Json
    # The worker's own time. It is kept and shown; liveness depends on the time of receipt.
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
    # How long to wait before the next heartbeat.
    nextHeartbeatMs: int
    # The store's clock when the heartbeat was applied.
    serverTime: str
    # ShouldCancel asks the worker to stop, to clean up and to report the outcome CANCELLED.
    shouldCancel: bool


class HeartbeatResponse(_HeartbeatResponse, total=False):
    """HeartbeatResponse acknowledges a heartbeat: it is applied in the store."""

    # The reason given for the cancel.
    cancelReason: str
    # TaskToken replaces the token in use; it is there only in the last third of that token's life.
    taskToken: str
    # When the new token expires.
    tokenExpiresAt: str


class _HeartbeatResult(TypedDict):
    # 200, or a status of the error table.
    status: int
    taskId: str


class HeartbeatResult(_HeartbeatResult, total=False):
    """The result of one heartbeat: Status is the HTTP status that the heartbeat would have got on its own, and the fields are those
    of its answer."""

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
    state: Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    taskToken: str
    tokenExpiresAt: str


class HeartbeatsRequest(TypedDict):
    """The body of POST /v1/heartbeats."""

    # 1 to 1,000 heartbeats of any tasks.
    heartbeats: List[HeartbeatItem]


class HeartbeatsResponse(TypedDict):
    """HeartbeatsResponse answers a batch of heartbeats."""

    # Has one entry for each heartbeat, in the same order.
    results: List[HeartbeatResult]
    # The store's clock.
    serverTime: str


class _HistoryEntry(TypedDict):
    attempt: int
    dispatchedAt: Optional[str]
    endedAt: Optional[str]
    # The evidence for Lubdub's verdict; null if the worker ended the attempt itself.
    evidence: Optional[Evidence]
    # When the attempt's last heartbeat was received; null if there was none.
    lastHeartbeatAt: Optional[str]
    lastProgress: Optional[Progress]
    # SUCCEEDED, FAILED, CANCELLED, SNOOZED, ZOMBIE, TIMED_OUT, LOST or SUPERSEDED.
    outcome: Literal["SUCCEEDED", "FAILED", "CANCELLED", "ZOMBIE", "TIMED_OUT", "LOST", "SUPERSEDED", "SNOOZED"]
    reason: Optional[str]
    startedAt: Optional[str]
    workerId: Optional[str]


class HistoryEntry(_HistoryEntry, total=False):
    """One ended attempt."""

    # The worker's own clock when it completed the attempt.
    completedAt: str
    # At most 2 KiB; the texts of a longer one are cut.
    error: Optional[Dict[str, Json]]
    # At most 1 KiB: of larger ones, the first members that fit. The task has all of the last attempt's.
    metrics: Json
    # RetriesExhausted reports that the attempt was worth a retry, but the task's policy allows no more.
    retriesExhausted: bool
    willRetry: bool


class Hold(TypedDict):
    """Hold keeps a worker that an operator took offline, or the workers of such a machine, from registering again. It lasts until
    the worker or the machine is resumed, at most 30 days after the worker's end or after the machine's last worker was deleted."""

    reason: Optional[str]
    since: Optional[str]


class Index(TypedDict):
    """The body of GET /."""

    links: IndexLinks
    name: str
    # What to do first.
    next: str
    version: str


class IndexLinks(TypedDict):
    """Paths on the server, including the base path of a proxy."""

    api: str
    dashboard: str
    docs: str
    health: str
    openapi: str
    version: str


class Levels(TypedDict):
    """The numbers at a moment."""

    machines: MachineCounts
    # How long the oldest overdue entry of the sweepers has been overdue, in the whole deployment.
    oldestOverdueMs: int
    # By state.
    tasks: Dict[str, int]
    workers: WorkerLevels


class LostTask(TypedDict):
    """An attempt that is no longer the worker's."""

    attempt: int
    # The code with which a heartbeat of the attempt would be refused.
    error: str
    taskId: str


class LostWorker(TypedDict):
    """A worker that ended unexpectedly, and what became of its tasks."""

    # Attempts were taken from it so far; each task is in one of the three counts below.
    attempts: int
    # Exhausted tasks failed because their retries are used up.
    exhausted: int
    # Failed tasks could not be retried: they have no retry policy, or cancellation was requested.
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
    """A host, derived from its workers."""

    # Set while the machine is drained: workers that register on it get no work until it is resumed.
    drain: Optional[MachineDrain]
    flapping: bool
    # Set while the machine is held offline: registrations on it are refused until it is resumed.
    hold: Optional[Hold]
    lastHeartbeatAt: Optional[str]
    machineId: str
    # How often in the last 24 h it went OFFLINE because its last worker had gone stale.
    staleCount24h: int
    # ONLINE while one of its workers is, else DRAINING while one is, else OFFLINE.
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

    # When the tasks that its workers still hold go to other workers.
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

    # The next fires, as if the schedule were not paused.
    next: List[str]
    scheduleId: str


class OfflineWorkersRequest(TypedDict, total=False):
    """The body of POST /v1/workers:offline."""

    # DryRun only counts.
    dryRun: Optional[bool]
    # Shown with the workers and recorded in the events.
    reason: Optional[str]
    # Selector selects workers that match all of its fields. It or silentForMs must be set.
    selector: Optional[SilentSelector]
    # SilentForMs may be given here or in the selector.
    silentForMs: Optional[int]


class PauseQueueRequest(TypedDict, total=False):
    """The body of POST /v1/queues/{queue}/pause."""

    # Recorded in the event queue.paused. A queue that is already paused keeps its reason.
    reason: Optional[str]


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
    state: Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    taskId: str
    type: Optional[str]
    # Those that were lost with it in the last hour, newest first, 10 at most.
    workers: List[LostWorker]


class _Progress(TypedDict):
    # A string, as the worker sent it.
    message: Optional[str]
    # A number from 0 to 100, as the worker sent it.
    progressPct: Optional[float]


class Progress(_Progress, total=False):
    """A progress report."""

    # The last checkpoint of the task: the details that a heartbeat of any earlier attempt reported. They are absent where none did,
    # and from histories.
    details: Json


class _Queue(TypedDict):
    # How many tasks wait to be claimed, with or without an eligible worker; those that are SCHEDULED or wait for their backoff do
    # not count.
    depth: int
    # How long the oldest of the tasks in Depth has waited; null if Depth is 0.
    oldestWaitMs: Optional[int]
    # Depth plus Running.
    outstanding: int
    # Paused reports that no tasks are handed out.
    paused: bool
    queue: str
    # How many of its tasks are DISPATCHED or RUNNING.
    running: int
    tenantId: str
    # The types of the tasks in Depth.
    types: List[QueueType]
    # Workers counts the queue's workers by status.
    workers: QueueWorkers
    workspaceId: str


class Queue(_Queue, total=False):
    """The state of one queue: its tasks and its workers."""

    # Set only in the answer to a pause: the queue did not exist before, so its name may be mistyped.
    created: bool


class QueueList(TypedDict):
    """The answer of GET /v1/queues."""

    # Those that have tasks or workers, or are paused; sorted by name.
    queues: List[Queue]


class QueueType(TypedDict):
    """The waiting tasks of one type in a queue."""

    depth: int
    # How long the oldest has waited.
    oldestWaitMs: int
    # Null for tasks without one.
    type: Optional[str]
    # How many of them have no eligible worker in the queue: no uncordoned worker has their type, runtime and labels, or the worker
    # that they are pinned to is cordoned or offline.
    unrunnable: int


class QueueWorkers(TypedDict):
    """QueueWorkers counts workers of a queue."""

    draining: int
    offline: int
    online: int


class ReasonRequest(TypedDict, total=False):
    """The body of requests that have only a reason."""

    # Shown with the worker if it ends or is cordoned, and recorded in the event.
    reason: Optional[str]


class RedeliverRequest(TypedDict, total=False):
    """The body of POST /v1/webhooks/{webhookId}/redeliver: one of its fields."""

    # The delivery to send again now.
    deliveryId: Optional[str]
    # PageToken continues a previous call with since.
    pageToken: Optional[str]
    # Since sends all events since then again that are still stored.
    since: Optional[str]


class _RedeliverResponse(TypedDict):
    # How many messages this call queued.
    queued: int


class RedeliverResponse(_RedeliverResponse, total=False):
    """Its answer."""

    # The range of events that are no longer stored.
    gap: EventGap
    # Present if there are more.
    nextPageToken: str


class _RegisterWorkerRequest(TypedDict):
    # Queue that the worker claims from.
    queue: str
    # Types of tasks that it runs, at least one.
    types: List[str]


class RegisterWorkerRequest(_RegisterWorkerRequest, total=False):
    """The body of POST /v1/workers."""

    # Hostname and PID together are its identity: a registration with the same ones and the same queue, machine and name replaces
    # the previous one. In containers, where every process may be pid 1, give each its own name, machineId or hostname.
    hostname: Optional[str]
    # Up to 64 pairs to select the worker by.
    labels: Optional[Dict[str, str]]
    # The host that it runs on; absent: the hostname, turned into an id, or else the worker is its own machine.
    machineId: Optional[str]
    # How many tasks it holds at most. Default 100; 0 counts as 1.
    maxConcurrent: Optional[int]
    # A readable name; a worker that restarts with the same name counts as the same one.
    name: Optional[str]
    # Its process id; 0 or absent: unknown.
    pid: Optional[int]
    # Probed, if the deployment uses probes, before a late worker is declared dead.
    probeUrl: Optional[str]
    # Generated by the process for each registration, and makes its repeats safe as the header Idempotency-Key does: they get the
    # first answer and supersede no worker, however late they come. It is kept for 24 hours, or for as long as OFFLINE workers are
    # if that is shorter.
    registrationId: Optional[str]
    # Runtimes that it has.
    runtimes: Optional[List[str]]
    # Version of the worker's program.
    version: Optional[str]


class _RegisterWorkerResponse(TypedDict):
    # How often the worker must send heartbeats; the server chooses it.
    heartbeatIntervalMs: int
    # How long it may be silent.
    heartbeatTimeoutMs: int
    machineId: str
    tokenExpiresAt: str
    workerId: str
    # Valid for the worker's own calls.
    workerToken: str


class RegisterWorkerResponse(_RegisterWorkerResponse, total=False):
    """The answer to a registration, which counts as the first heartbeat."""

    # What this server has beyond the first release: exchange, for POST /v1/workers/{workerId}/exchange.
    capabilities: List[str]
    # True if the worker's machine is drained: the worker sends heartbeats and claims nothing until a heartbeat is answered with
    # shouldDrain false, once the machine is resumed. Absent otherwise.
    shouldDrain: bool
    # The worker with the same identity that this one replaced.
    superseded: str


class _Rejected(TypedDict):
    full: int
    labels: int
    runtime: int
    stale: int
    status: int
    type: int


class Rejected(_Rejected, total=False):
    """Rejected counts workers by the first filter that they failed, in the order of the filters."""

    # Cordoned workers get no new tasks until they are uncordoned; absent if no worker is cordoned.
    cordoned: int


class ReleaseRequest(TypedDict, total=False):
    """The body of POST /v1/system:release."""

    # How long the mass-expiry brake is off in this tenant and workspace; absent: 10 minutes.
    durationMs: Optional[int]


class ReleaseResponse(TypedDict):
    """The answer to POST /v1/system:release."""

    releasedUntil: Optional[str]
    # TasksReleased were held and expire now unless a heartbeat arrives.
    tasksReleased: int
    # WorkersReleased were held and go OFFLINE now unless a heartbeat arrives.
    workersReleased: int


class ResumeMachineResponse(TypedDict):
    """ResumeMachineResponse counts what resuming a machine did."""

    # Matched workers of the machine were DRAINING.
    matched: int
    # How many of them this call made ONLINE: those that drained with the machine.
    resumed: int
    # Their ids.
    workerIds: List[str]


class Retry(TypedDict):
    """A retry policy in force."""

    initialBackoffMs: int
    maxAttempts: int
    maxBackoffMs: int
    maxLosses: int
    multiplier: float


class RetryPolicy(TypedDict, total=False):
    """RetryPolicy in a request; absent fields have the default in their comment."""

    # The wait before the first retry. Default 1,000.
    initialBackoffMs: Optional[int]
    # The number of failures reported by workers that fails the task. Default 3.
    maxAttempts: Optional[int]
    # MaxBackoffMs bounds the wait. Default 60,000.
    maxBackoffMs: Optional[int]
    # How many attempts may be lost to silence or a dead worker and be retried. Default 3.
    maxLosses: Optional[int]
    # Multiplier of the wait from retry to retry, 1 to 100. Default 2.
    multiplier: Optional[float]


class _RetryTasksRequest(TypedDict):
    # Selector selects the tasks; it must have at least one field. Of those that match only FAILED ones are retried.
    selector: TaskSelector


class RetryTasksRequest(_RetryTasksRequest, total=False):
    """The body of POST /v1/tasks:retry."""

    # DryRun only counts the tasks that match, and those that would be changed.
    dryRun: Optional[bool]
    # The nextPageToken of the previous answer.
    pageToken: Optional[str]


class RevokeTokensRequest(TypedDict, total=False):
    """The body of POST /v1/tokens:revoke. It has one of subject, workerId and tenantId."""

    # IssuedBefore revokes tokens issued up to this time, to the second; absent: now.
    issuedBefore: Optional[str]
    # The bearer whose control tokens are revoked, in the tenant and workspace of the request; with a token for all of them in all,
    # unless the query names one.
    subject: Optional[str]
    # The tenant whose tokens of every kind are revoked. This needs an admin token for all its workspaces.
    tenantId: Optional[str]
    # The worker whose own token, and the tokens of whose tasks, are revoked.
    workerId: Optional[str]


class _RevokeTokensResponse(TypedDict):
    # A whole second. A token that was issued in that second is revoked too.
    issuedBefore: Optional[str]
    # * if tokens of every tenant are revoked.
    tenantId: str
    # * if tokens of every workspace are revoked.
    workspaceId: str


class RevokeTokensResponse(_RevokeTokensResponse, total=False):
    """The answer to POST /v1/tokens:revoke: it takes effect on this server now, and on all within 2 s."""

    subject: str
    workerId: str


class RotateSecretRequest(TypedDict, total=False):
    """The body of POST /v1/webhooks/{webhookId}/rotate-secret."""

    # The new one; absent: one is generated.
    secret: Optional[str]


class Run(TypedDict):
    """Run counts the tasks of a run."""

    # Has every state, including those without tasks.
    counts: Dict[str, int]
    runId: str
    tenantId: str
    # Their sum.
    totalCount: int
    workspaceId: str


class Schedule(TypedDict):
    """Schedule creates a task at each of its times."""

    createdAt: str
    cron: str
    # How many fires have created their tasks.
    fired: int
    # The last ten processed fires, newest first.
    fires: List[ScheduleFire]
    # The last fire that was processed; before the first one, the time of creation.
    last: str
    maxCatchup: int
    # The next fire; null if the schedule has no further fire or is paused.
    next: Optional[str]
    overlap: Literal["allow", "skip"]
    # Paused reports that it does not fire.
    paused: bool
    pausedAt: Optional[str]
    # How many fires wait for their tasks.
    pending: int
    scheduleId: str
    # How many fires created no task: they were missed and exceed maxCatchup, the previous task still ran, or theirs was refused.
    skipped: int
    # What each fire creates; lists leave out its payload and resources.
    task: Optional[CreateTaskRequest]
    tenantId: str
    updatedAt: str
    workspaceId: str


class _ScheduleFire(TypedDict):
    fireAt: str
    # The origin: schedule, manual or backfill.
    kind: str
    # When the outcome was recorded.
    notedAt: str
    # CREATED, SKIPPED (the previous task still ran) or REFUSED (its task was refused).
    outcome: str


class ScheduleFire(_ScheduleFire, total=False):
    """One time at which a schedule fired."""

    # The code with which the task was refused.
    error: str
    # Why that task failed.
    reason: str
    # The state of the created task; absent once that is deleted.
    state: Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    # The created task; with SKIPPED the one that still ran.
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
    """The best worker for a task now."""

    # Considered workers are those of the queue.
    considered: int
    rejected: Rejected
    worker: Worker


class SilentSelector(TypedDict, total=False):
    """SilentSelector selects workers, also by their silence."""

    labels: Dict[str, str]
    machineId: str
    queue: str
    # For how long they must have been silent, outages excluded. A worker whose heartbeat arrives first is left alone.
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

    # The reason given for the cancel.
    cancelReason: str
    # ShouldCancel asks the worker to stop; it is there only when true.
    shouldCancel: bool


class Stats(TypedDict):
    """The answer of GET /v1/stats."""

    # How close live tasks and workers came to their timeouts in the last hour, in the whole deployment; null: not sampled.
    beatGapRatio: Optional[BeatGapRatio]
    # The sum of the steps, of the whole deployment.
    lastHour: StatsCounts
    machines: MachineCounts
    # How long the oldest overdue entry of the sweepers has been overdue, in the whole deployment.
    oldestOverdueMs: int
    # Those of the newest step, of the whole deployment.
    rates: StatsRates
    series: StatsSeries
    # By state.
    tasks: Dict[str, int]
    # TenantID and WorkspaceID are the scope of the levels; null: all.
    tenantId: Optional[str]
    # When it was counted, at most a second ago.
    time: str
    workers: WorkerLevels
    workspaceId: Optional[str]


class StatsCounts(TypedDict):
    """Counts in a period."""

    # Accepted heartbeats.
    beats: int
    claimedTasks: int
    # By result: tasks, nothing, refused.
    claims: Dict[str, int]
    # Refused heartbeats by error code.
    refused: Dict[str, int]
    # Attempts that Lubdub ended, by reason.
    verdicts: Dict[str, int]


class StatsRates(TypedDict):
    """Rates per second and delays."""

    # The 99th percentile of the duration of heartbeats, estimated from a histogram; null: there were none.
    beatP99Ms: Optional[float]
    beatsPerSecond: float
    claimedTasksPerSecond: float
    claimsPerSecond: float
    refusedPerSecond: float
    # The age of the oldest overdue entry at the sweepers' last sweep, for the worst of them.
    sweepLagMs: int
    verdictsPerSecond: float


class StatsSeries(TypedDict):
    """Has the counts of the last hour, on all replicas."""

    # How long a step is.
    stepMs: int
    # In order of time. Steps in which no replica reported are left out.
    steps: List[StatsStep]


class StatsStep(TypedDict):
    """One step of a series."""

    # When it began.
    at: Optional[str]
    beatP99Ms: Optional[float]
    # Accepted heartbeats.
    beats: int
    claimedTasks: int
    # By result: tasks, nothing, refused.
    claims: Dict[str, int]
    # The levels of the whole deployment: null if they were not counted, or the token is not valid for all scopes.
    levels: Optional[Levels]
    # Refused heartbeats by error code.
    refused: Dict[str, int]
    # How many replicas reported.
    replicas: int
    sweepLagMs: int
    # Attempts that Lubdub ended, by reason.
    verdicts: Dict[str, int]


class Summary(TypedDict):
    """All findings in one."""

    # What the worst findings are about.
    about: Literal["us", "them", "both", "none"]
    # What is wrong, the worst first, and then the state of the deployment.
    message: str
    # The worst severity.
    severity: Literal["ok", "warn", "fail"]
    title: str


class SuspectVersion(TypedDict):
    """A version of workers that may be the cause of failures."""

    of: int
    version: str
    # How many workers run it, of all that could run the tasks; OFFLINE ones are not counted.
    workers: int


class SweepResponse(TypedDict):
    """The answer to POST /v1/system:sweep."""

    results: SweepResults
    success: bool


class SweepResults(TypedDict):
    """The results of a sweep."""

    staleWorkers: SweptWorkers
    zombies: SweptTasks


class SweptTasks(TypedDict):
    """SweptTasks counts tasks in a sweep."""

    # DeletedCount finished tasks were past their retention.
    deletedCount: int
    # ReadyCount queued tasks had waited out their backoff.
    readyCount: int
    # RequeuedCount of both returned to their queues.
    requeuedCount: int
    success: bool
    # TimedOutCount attempts reached another timeout or a deadline.
    timedOutCount: int
    # ZombieCount attempts reached their heartbeat timeout.
    zombieCount: int


class SweptWorkers(TypedDict):
    """SweptWorkers counts workers in a sweep."""

    # The machines, in the token's scope, of the workers that were marked OFFLINE.
    affectedMachineIds: List[str]
    # DeletedCount OFFLINE workers were past their retention.
    deletedCount: int
    # DrainedCount workers had finished their tasks.
    drainedCount: int
    # MarkedOfflineCount workers reached their heartbeat timeout.
    markedOfflineCount: int
    # RecoveredCount attempts were taken from ended workers.
    recoveredCount: int
    success: bool


class System(TypedDict):
    """The answer of GET /v1/system."""

    brake: SystemBrake
    # DifferingSettings names settings that differ between replicas and should not.
    differingSettings: List[str]
    # The evidence: failures first, then warnings, then what is well; with the same severity, those about Lubdub and Redis come
    # before those about the workers and queues of the scope.
    findings: List[Finding]
    # The setting logs-url: the template of links to logs. It is null where none is set.
    logsUrl: Optional[str]
    # The tasks of the scope that several workers ran when they were lost in the last hour, most workers first, 10 at most. It is
    # empty where the scope is not one workspace.
    poisonTasks: List[PoisonTask]
    # The attempts of the scope that workers reported as FAILED in the last hour. It is empty where the scope is not one workspace.
    recentFailures: Failures
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
    # Whether Lubdub or the workers are at fault, in a sentence.
    summary: Summary
    # When it was read, at most a second ago.
    time: str
    webhooks: SystemWebhooks


class SystemBrake(TypedDict):
    """The mass-expiry brake of the replica that answers."""

    enabled: bool
    # The number of its entries: attempts and workers that it holds, and scopes that were released or reported.
    held: int
    sharePct: int


class SystemReconciler(TypedDict):
    """What the reconcilers of all replicas do."""

    examinedLastHour: int
    # How many entries they check; 0: none.
    ratePerSecond: int
    repairedLastHour: int


class SystemRedis(TypedDict):
    """One Redis server. Values that it does not report are null."""

    # Null for the one inside a Lubdub process.
    address: Optional[str]
    appendOnly: bool
    # How far its clock is ahead of the clock of the replica that answers.
    clockOffsetMs: float
    # Why it does not answer; null: it does.
    error: Optional[str]
    lastSaveAt: Optional[str]
    # Its memory limit; 0: none.
    maxMemoryBytes: int
    maxMemoryPolicy: Optional[str]
    memoryBytes: int
    # The number of connected replicas.
    replicas: int
    role: Optional[str]
    roundTripMs: float
    version: Optional[str]


class SystemReplica(TypedDict):
    """One Lubdub process."""

    commit: Optional[str]
    # When it last reported. A replica that is silent for 30 s is no longer shown.
    heardAt: Optional[str]
    replicaId: str
    roles: List[str]
    # When it started.
    since: Optional[str]
    version: str


class SystemShard(TypedDict):
    """One slice of the keyspace."""

    # The number of events in its stream; the oldest is EventsAgeMs old.
    events: int
    eventsAgeMs: int
    # How long the oldest overdue entry has been overdue; 0: none is.
    lagMs: int
    # How much outage time of the last hour was not counted as silence.
    outageCreditMs: int
    # Ended workers whose attempts have not all been taken yet.
    recoveries: int
    shard: int
    # For how long its time has been stopped.
    stoppedMs: int
    # The process that sweeps it first; null: it is not swept.
    sweeper: Optional[str]


class SystemUnavailable(TypedDict):
    """The answer of GET /v1/system with status 503, while no Redis responds: what the server knows without it. Lists of replicas,
    shards, workers and tasks are empty and counts are 0, as nothing is known of them."""

    brake: SystemBrake
    # DifferingSettings names settings that differ between replicas and should not.
    differingSettings: List[str]
    # Store_unavailable.
    error: str
    # The evidence: failures first, then warnings, then what is well; with the same severity, those about Lubdub and Redis come
    # before those about the workers and queues of the scope.
    findings: List[Finding]
    # The setting logs-url: the template of links to logs. It is null where none is set.
    logsUrl: Optional[str]
    # Message describes what happened and what to do about it.
    message: str
    # The tasks of the scope that several workers ran when they were lost in the last hour, most workers first, 10 at most. It is
    # empty where the scope is not one workspace.
    poisonTasks: List[PoisonTask]
    # The attempts of the scope that workers reported as FAILED in the last hour. It is empty where the scope is not one workspace.
    recentFailures: Failures
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
    # Whether Lubdub or the workers are at fault, in a sentence.
    summary: Summary
    # When it was read, at most a second ago.
    time: str
    webhooks: SystemWebhooks


class SystemWebhooks(TypedDict):
    """The state of the webhooks of all tenants."""

    # How many pending deliveries were dropped because those of their tenant exceeded the size limit.
    droppedLastHour: int


class _Task(TypedDict):
    assetId: Optional[str]
    # The current attempt, 0 before the first dispatch.
    attempt: int
    cancelGracePeriodMs: int
    cancelReason: Optional[str]
    cancelRequested: bool
    # The worker's own clock when it completed the last attempt.
    completedAt: Optional[str]
    createdAt: str
    deadline: Optional[str]
    dispatchedAt: Optional[str]
    # Why the task FAILED or, while it is QUEUED for a retry, why the previous attempt did: everything that the worker reported.
    error: Optional[Dict[str, Json]]
    # Counted against retry.maxAttempts.
    failures: int
    finishedAt: Optional[str]
    heartbeatIntervalMs: int
    # Null for a task that depends on its worker's heartbeat.
    heartbeatTimeoutMs: Optional[int]
    # Has an entry for each ended attempt, oldest first; the newest 100 are kept.
    history: List[HistoryEntry]
    labels: Dict[str, str]
    # When the last heartbeat was received, by the store's clock; while a task without its own timeout is RUNNING, its worker's, if
    # that is later. It is kept after the end.
    lastHeartbeatAt: Optional[str]
    # Null unless the task is RUNNING.
    liveness: Optional[Literal["FRESH", "LATE", "LOST"]]
    # Counted against retry.maxLosses.
    losses: int
    message: Optional[str]
    metrics: Optional[Dict[str, Json]]
    # The earliest time of the next dispatch, while SCHEDULED, or QUEUED for a backoff.
    nextAttemptAt: Optional[str]
    output: Json
    progressPct: Optional[float]
    queue: Optional[str]
    # Why the task FAILED; TERMINATED where it was CANCELLED without waiting for its worker.
    reason: Optional[str]
    # The worker's own clock at that time.
    reportedHeartbeatAt: Optional[str]
    # Null for a task that is not retried automatically.
    retry: Optional[Retry]
    runId: str
    startedAt: Optional[str]
    state: Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    taskId: str
    taskKey: Optional[str]
    tenantId: str
    type: Optional[str]
    workerId: Optional[str]
    workspaceId: str


class Task(_Task, total=False):
    """The full view of one task."""

    cancelledDuringPhase: str
    # The last checkpoint that a heartbeat of any attempt reported; absent if none did, and from lists.
    details: Json
    # Another name of runAt.
    notBefore: str
    partialProgress: Json
    # Payload and Resources are returned by GET /v1/tasks/{taskId} only.
    payload: Json
    resources: Dict[str, Json]
    # RetriesExhausted reports that a retry might have helped the task that FAILED, but its policy allows no more; absent otherwise,
    # as when the error was not retryable.
    retriesExhausted: bool
    # The earliest time of the first claim.
    runAt: str
    runTimeoutMs: int
    runtime: str
    # The schedule that created the task; absent if none did.
    scheduleId: str
    # Present if the task was given one.
    startTimeoutMs: int
    # The W3C trace context of the creation; absent if it had none.
    traceparent: str
    workerLabels: Dict[str, str]


class _TaskEnvelope(TypedDict):
    assetId: Optional[str]
    # The number of the attempt, counted from 1. Every callback includes it.
    attempt: int
    # Where the callbacks go: POST {callbackBaseUrl}/v1/tasks/{taskId}/heartbeat and so on.
    callbackBaseUrl: str
    # How long the worker has to stop once it was notified of a cancel.
    cancelGracePeriodMs: int
    deadline: Optional[str]
    # When this attempt was handed out.
    enqueuedAt: str
    # How often to send heartbeats.
    heartbeatIntervalMs: int
    # The silence after which the attempt is dead; null: it depends on its worker's heartbeat.
    heartbeatTimeoutMs: Optional[int]
    labels: Dict[str, str]
    # Payload as given at creation; null when none was.
    payload: Json
    queue: Optional[str]
    # Resources as given at creation; an empty object when none were.
    resources: Dict[str, Json]
    runId: str
    # DISPATCHED, or RUNNING if the claim has started the task.
    state: Literal["SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
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

    # The last progress that the previous attempt reported.
    lastProgress: Progress
    # Since when the task could be claimed; absent if it was pushed, or if the claim was repeated.
    readyAt: str
    # RunTimeoutMs bounds the time from the attempt's start to its end; absent: the task has no separate limit.
    runTimeoutMs: int
    # The schedule that created the task; absent if none did.
    scheduleId: str
    # The W3C trace context of the creation; absent if it had none.
    traceparent: str


class _TaskError(TypedDict):
    # One of the six.
    category: Literal["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"]


class TaskError(_TaskError, total=False):
    """A failure as its worker reports it."""

    # Readable text.
    message: Optional[str]
    # How long to wait before the next attempt, 0 to 31,622,400,000 (366 days), if the failure is retried; absent: the backoff of
    # the retry policy.
    retryAfterMs: Optional[int]
    # Retryable reports whether a retry may help; absent: its category's default.
    retryable: Optional[bool]
    # Readable text.
    stackTrace: Optional[str]


class _TaskList(TypedDict):
    tasks: List[Task]
    # Null when the filter does not allow an exact count.
    totalCount: Optional[int]


class TaskList(_TaskList, total=False):
    """One page of GET /v1/tasks, in the order of task ids."""

    # Absent on the last page. It is valid for the same filter only.
    nextPageToken: str


class TaskSelector(TypedDict, total=False):
    """TaskSelector selects tasks that match all of its fields."""

    # FinishedAfter selects finished tasks by when they ended.
    finishedAfter: str
    labels: Dict[str, str]
    machineId: str
    queue: str
    # Why they ended.
    reason: str
    runId: str
    # The schedule that created them.
    scheduleId: str
    # One state, or several separated by commas.
    state: str
    type: str
    workerId: str


class _UpdateWebhookRequest(TypedDict):
    events: List[str]
    # Where messages are posted: https, and http if the deployment allows it.
    url: str


class UpdateWebhookRequest(_UpdateWebhookRequest, total=False):
    """The body of PUT /v1/webhooks/{webhookId}: it replaces the webhook's definition."""

    description: Optional[str]
    # True by default. While it is false no events are collected for it, and pending deliveries are dropped.
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
    # The start of the period.
    since: Optional[str]
    # How many there are.
    total: int
    # Truncated reports that more than 100,000 were found, or 10,000 if they are grouped by a label: the oldest are omitted.
    truncated: bool


class _VerdictGroup(TypedDict):
    count: int
    # The time of the last one.
    lastAt: Optional[str]


class VerdictGroup(_VerdictGroup, total=False):
    """VerdictGroup counts verdicts with the same values of the group's fields. A missing or unknown value is empty."""

    # The requested labels of their tasks.
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


class _WaitTasksRequest(TypedDict):
    # 1 to 1,000 tasks, each once.
    taskIds: List[str]


class WaitTasksRequest(_WaitTasksRequest, total=False):
    """The body of POST /v1/tasks:wait."""

    # How long to wait until the first of them has ended. Default 0: do not wait.
    waitMs: Optional[int]


class WaitTasksResponse(TypedDict):
    """Has those of the requested tasks that have ended."""

    # The requested ids that do not exist.
    notFound: List[str]
    # At most 100, less if they are large, in the order of the request and as lists have them, without payload and resources. Other
    # tasks that have ended are in the answer to the next request.
    tasks: List[Task]


class _Webhook(TypedDict):
    createdAt: str
    # How many stored deliveries were abandoned.
    dead: int
    disabledAt: Optional[str]
    # GONE, after a 410; FAILING, after five days of failures; OPERATOR; or null while it is enabled.
    disabledReason: Optional[str]
    enabled: bool
    # Types of events, such as task.failed, or families of them, such as task.*. At least one.
    events: List[str]
    # Since when all deliveries have failed.
    failingSince: Optional[str]
    # Managed webhooks come from the deployment's configuration and are changed there only.
    managed: bool
    # Until when older secrets sign too; null without an older secret.
    oldSecretsUntil: Optional[str]
    # How many deliveries wait or are in flight.
    pending: int
    tenantId: str
    updatedAt: str
    url: str
    webhookId: str
    workspaceId: str


class Webhook(_Webhook, total=False):
    """A receiver of events."""

    description: str
    machineId: str
    queue: str
    runId: str
    # Present only in the answer that created it.
    secret: str
    # Subject, a task, worker or machine, limits the events to those about it; absent: all. The same applies to the other fields.
    subject: str
    taskType: str
    workerId: str


class WebhookDelivery(TypedDict):
    """The delivery of one message to a webhook."""

    # The number of tries; after ten it is DEAD.
    attempts: int
    createdAt: str
    deliveryId: str
    # The event in the message; null: the message is about the webhook itself.
    eventId: Optional[str]
    lastAttemptAt: Optional[str]
    # Its webhook-id, the same for each try.
    messageId: str
    nextAttemptAt: Optional[str]
    # The result of the last try; null: there was none.
    response: Optional[WebhookResponse]
    status: Literal["PENDING", "DELIVERED", "DEAD"]
    subject: Optional[str]
    type: str


class _WebhookDeliveryList(TypedDict):
    # Newest first.
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
    """The result of a try."""

    # The beginning of the answer's, at most 1 KiB.
    body: str
    # Why there was no answer.
    error: Optional[str]
    # The answer's; null: there was none.
    status: Optional[int]
    # The duration.
    tookMs: int


class Worker(TypedDict):
    """One registered worker."""

    # The value of its last heartbeat.
    activeCount: int
    # Set while the worker gets no new tasks; it is independent of the status.
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
    # Set while the worker is held offline: registrations of its identity are refused until it is resumed.
    hold: Optional[Hold]
    hostname: Optional[str]
    labels: Dict[str, str]
    # LastHeartbeatAgeMs excludes outages.
    lastHeartbeatAgeMs: Optional[int]
    lastHeartbeatAt: Optional[str]
    # Computed from the last heartbeat at the time of the answer, also for a worker that is OFFLINE.
    liveness: Literal["FRESH", "LATE", "LOST"]
    machineId: str
    maxConcurrent: int
    name: Optional[str]
    pid: Optional[int]
    # How many queued tasks are pinned to it.
    placedCount: int
    queue: str
    registeredAt: str
    runtimes: List[str]
    # Schedulable reports whether it would be selected now.
    schedulable: bool
    # How often it, or another registration with the same queue, machine and name, went stale in the last 24 h, up to 1,000.
    # Flapping reports that this is at least 3.
    staleCount24h: int
    status: Literal["ONLINE", "DRAINING", "OFFLINE"]
    # The reason given for its drain or its end. That of a drain stays if the worker ends DRAINED, DRAIN_DEADLINE or DEREGISTERED
    # and no other was given; without any it is the same as endReason.
    statusReason: Optional[str]
    tenantId: str
    # How many attempts its heartbeats reported as completed. GET /v1/tasks with its workerId lists the tasks that ended on it.
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
    """The cordon of a worker, which lasts until the worker is uncordoned or ends. A worker that supersedes it inherits the cordon."""

    reason: Optional[str]
    since: Optional[str]


class WorkerHeartbeatRequest(TypedDict, total=False):
    """The body of POST /v1/workers/{workerId}/heartbeat; all of it is optional."""

    # How many tasks it works on. Those that it did not claim count as load when workers are selected.
    activeCount: Optional[int]
    # How many tasks it completed since the last answered heartbeat.
    completedDelta: Optional[int]
    # How many failed since then.
    failedDelta: Optional[int]
    # Seq increases from heartbeat to heartbeat; required with deltas. A repeated one adds nothing, and an inventory whose seq is
    # not higher than the last takes nothing from the worker.
    seq: Optional[int]
    # All its attempts, if it lists them: at most its maxConcurrent, and 1,000 that have ended without its knowledge. An attempt
    # that two heartbeats in a row omit is lost.
    tasks: Optional[List[WorkerTaskItem]]


class _WorkerHeartbeatResponse(TypedDict):
    accepted: bool
    # Attempts to stop gracefully. They are repeated until their delivery is recorded.
    cancelTasks: List[CancelTask]
    heartbeatIntervalMs: int
    heartbeatTimeoutMs: int
    # Attempts that are no longer the worker's; it must stop them at once.
    lostTasks: List[LostTask]
    serverTime: str
    # ShouldDrain asks the worker to claim nothing more, to finish its tasks and to deregister.
    shouldDrain: bool


class WorkerHeartbeatResponse(_WorkerHeartbeatResponse, total=False):
    """The answer to a worker's heartbeat."""

    # When its remaining tasks go to other workers.
    drainDeadline: str
    tokenExpiresAt: str
    # A new token, in the last third of the old one's life.
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
    """WorkerSelector selects workers."""

    labels: Optional[Dict[str, str]]
    machineId: Optional[str]
    queue: Optional[str]
    version: Optional[str]


class _WorkerTaskItem(TypedDict):
    attempt: int
    taskId: str


class WorkerTaskItem(_WorkerTaskItem, total=False):
    """One attempt in a worker's inventory."""

    # Its checkpoint, as in its own heartbeats.
    details: Json
    # Message describes the progress.
    message: Optional[str]
    # Its progress, 0 to 100.
    progressPct: Optional[float]


class NoFields(TypedDict, total=False):
    """It has no fields."""
