"""Errors of calls: a class for each error code of the API, and a few of the client's own. None contains a token."""

from __future__ import annotations

import http.client
import json
from typing import Any, Dict, Mapping, Optional, Tuple, Type, cast

from . import types as t

MAX_RETRY_AFTER = 3600  # seconds; the longest Retry-After that is honoured


class LubdubError(Exception):
    """The base of everything that this package raises."""

    def __reduce__(self) -> Tuple[Any, ...]:  # pickle must not call __init__: its parameters are not the args
        return type(self).__new__, (type(self), *self.args), self.__dict__


class ConfigurationError(LubdubError, ValueError):
    """An argument or setting cannot work. The text names the remedy. Nothing was sent."""


class ClosedError(LubdubError):
    """The client is closed."""


class ForkedError(LubdubError):
    """A handle or a worker was used in a forked process; it belongs to the parent, which sends its heartbeats."""


class NoAnswer(LubdubError):
    """No server answered: none could be reached, the connection broke, or the answer took too long."""

    sent = True  # True if it may have been sent


class NotSent(NoAnswer):
    """The connection could not be opened."""

    sent = False


class AnswerError(LubdubError):
    """An answer did not follow the API. The call is not retried."""


class OutputError(LubdubError, ValueError):
    """An output cannot be sent: it is not JSON, or exceeds the server's limit. Nothing was sent and the attempt continues."""


class EndedError(LubdubError):
    """The attempt is completed or abandoned; do not use its handle any more."""

    def __init__(self, text: str = "the attempt is completed or abandoned; do not use its handle any more") -> None:
        super().__init__(text)


class TaskFailed(LubdubError):
    """The task of Client.result FAILED or was CANCELLED; task is the whole task, with its state, reason, error and history."""

    def __init__(self, task: t.Task) -> None:
        reason, error = task.get("reason"), task.get("error")
        why: Any = error.get("message") if isinstance(error, dict) else None
        if task["state"] == "CANCELLED":
            why = task.get("cancelReason") or why
        text = f"task {task['taskId']} {task['state']}"
        text += f" ({reason})" if reason else ""
        text += f": {why}" if why else ""
        super().__init__(text)
        self.task = task


class ForcedOffline(LubdubError):
    """An operator forced the worker, or its machine, offline. It stays offline until it is resumed; remedy is the command for that."""

    def __init__(self, worker_id: str, remedy: str, reason: str = "") -> None:
        which = f"worker {worker_id}" if worker_id else "this worker's machine"
        super().__init__(
            f"{which} was forced offline{': ' + reason if reason else ''}. It does not register again until it is resumed: "
            f"`{remedy}`"
        )
        self.worker_id, self.remedy = worker_id, remedy


class ApiError(LubdubError):
    """A refusal: an answer other than 2xx. It has a subclass for each error code; code is "" if the answer is not Lubdub's, as with a
    proxy."""

    def __init__(
        self,
        operation: str,
        status: int,
        code: str = "",
        message: str = "",
        fields: Optional[Dict[str, Any]] = None,
        request_id: str = "",
        retry_after: float = 0,
    ) -> None:
        text = f"{operation}: {status} {code}".rstrip()
        text += f": {message}" if message else ""
        text += f" (request {request_id})" if request_id else ""
        super().__init__(text)
        self.operation = operation
        self.status = status
        self.code = code
        self.message = message
        # The other fields of the answer, such as expectedAttempt or field.
        self.fields: Dict[str, Any] = fields or {}
        # Identifies the call in the server's log.
        self.request_id = request_id
        # Seconds that the server asks to wait; 0: not given.
        self.retry_after = retry_after


# fmt: off
class InvalidRequest(ApiError): """400: a field, parameter or header is wrong; fields["field"] names it."""
class InvalidId(ApiError): """400: an id is not like [A-Za-z0-9][A-Za-z0-9._-]{0,127}."""
class InvalidCursor(ApiError): """400: a cursor of events that is not one of this deployment's."""
class InvalidJson(ApiError): """400: the body is not one JSON value of the right kind."""
class UnknownField(ApiError): """400: fields["field"] names it."""
class Unauthorized(ApiError): """401: no token, or one that is not valid."""
class Forbidden(ApiError): """403: a token for something else."""
class NotFound(ApiError): """404: no such path, or one of the classes below."""
class TaskNotFound(NotFound): """404."""
class RunNotFound(NotFound): """404."""
class WorkerNotFound(NotFound): """404: register again."""
class MachineNotFound(NotFound): """404."""
class ScheduleNotFound(NotFound): """404."""
class WebhookNotFound(NotFound): """404."""
class DeliveryNotFound(NotFound): """404: it is no longer stored."""
class NoWorkersMatch(NotFound): """404: the selector matches no worker."""
class MethodNotAllowed(ApiError): """405."""
class RequestTimeout(ApiError): """408: the request took too long to arrive."""
class Conflict(ApiError): """409: one of the classes below."""
class ScheduleExists(Conflict): """409."""
class TaskExists(Conflict): """409."""
class IdempotencyMismatch(Conflict): """409: the idempotency key was used with another body."""
class AttemptMismatch(Conflict): """409: expectedAttempt and receivedAttempt are in fields."""
class TaskAlreadyTerminal(Conflict): """409: fields["state"] is its final state."""
class TaskWithoutQueue(Conflict): """409: only a task of a queue can be snoozed."""
class WorkerDraining(Conflict): """409: it gets no new tasks."""
class WorkerHeldOffline(Conflict): """409: an operator forced this worker offline; fields["remedy"] is the command that resumes it."""
class NoFreshWorkers(Conflict): """409: no worker is fresh enough; considered and rejected are in fields."""
class NoMatchingWorkers(Conflict): """409: no worker passes the other filters."""
class NoCapacity(Conflict): """409: all matching workers are full."""
class WebhookExists(Conflict): """409."""
class WebhookManaged(Conflict): """409: it is defined in the server's configuration; change it there."""
class WebhookDisabled(Conflict): """409: enable it first."""
class WorkerOffline(ApiError): """410: fields["reason"] is the reason; register again."""
class TaskExpired(ApiError): """410: Lubdub ended the attempt; stop at once."""
class BodyTooLarge(ApiError): """413."""
class UnsupportedMedia(ApiError): """415."""
class Misdirected(ApiError): """421."""
class HeadersTooLarge(ApiError): """431."""
class InternalError(ApiError): """500: a bug; search the log for the request id."""
class Overloaded(ApiError): """429 and 503: retry after retry_after seconds."""
class StoreUnavailable(ApiError): """503: Redis did not answer; retry after retry_after seconds."""
class IssuerUnavailable(ApiError): """503: the token cannot be verified now; retry after retry_after seconds."""
# fmt: on


CODES: Dict[str, Type[ApiError]] = {
    "invalid_request": InvalidRequest,
    "invalid_id": InvalidId,
    "invalid_cursor": InvalidCursor,
    "invalid_json": InvalidJson,
    "unknown_field": UnknownField,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "not_found": NotFound,
    "task_not_found": TaskNotFound,
    "run_not_found": RunNotFound,
    "worker_not_found": WorkerNotFound,
    "machine_not_found": MachineNotFound,
    "schedule_not_found": ScheduleNotFound,
    "schedule_exists": ScheduleExists,
    "no_workers_match": NoWorkersMatch,
    "webhook_not_found": WebhookNotFound,
    "delivery_not_found": DeliveryNotFound,
    "method_not_allowed": MethodNotAllowed,
    "request_timeout": RequestTimeout,
    "task_exists": TaskExists,
    "idempotency_mismatch": IdempotencyMismatch,
    "attempt_mismatch": AttemptMismatch,
    "task_already_terminal": TaskAlreadyTerminal,
    "task_without_queue": TaskWithoutQueue,
    "worker_draining": WorkerDraining,
    "worker_held_offline": WorkerHeldOffline,
    "no_fresh_workers": NoFreshWorkers,
    "no_matching_workers": NoMatchingWorkers,
    "no_capacity": NoCapacity,
    "webhook_exists": WebhookExists,
    "webhook_managed": WebhookManaged,
    "webhook_disabled": WebhookDisabled,
    "worker_offline": WorkerOffline,
    "task_expired": TaskExpired,
    "body_too_large": BodyTooLarge,
    "unsupported_media_type": UnsupportedMedia,
    "misdirected_request": Misdirected,
    "headers_too_large": HeadersTooLarge,
    "internal_error": InternalError,
    "overloaded": Overloaded,
    "store_unavailable": StoreUnavailable,
    "issuer_unavailable": IssuerUnavailable,
}


def refusal(operation: str, status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Builds the error for an answer other than 2xx; header names are in lower case."""
    fields: Dict[str, Any] = {}
    try:
        read = json.loads(body)
        if isinstance(read, dict):
            fields = cast(Dict[str, Any], read)
    except (ValueError, RecursionError):
        pass  # a proxy's page; its status is enough
    code, message = fields.pop("error", ""), fields.pop("message", "")
    code, message = code if isinstance(code, str) else "", message if isinstance(message, str) else ""
    if not code:
        message = http.client.responses.get(status, "")
        if headers.get("location"):
            message += (
                ": redirects are not followed, since that would send the token to another host; use the final address"
            )
    return CODES.get(code, ApiError)(
        operation,
        status,
        code,
        message,
        fields,
        headers.get("x-request-id", ""),
        retry_after(headers.get("retry-after", "")),
    )


def forced_offline(error: BaseException, worker_id: str) -> Optional[ForcedOffline]:
    """The error if a refusal means that the worker is held offline; otherwise None."""
    if isinstance(error, WorkerHeldOffline):
        found = error.fields.get("workerId")
        worker_id = found if isinstance(found, str) else ""
        remedy = error.fields.get("remedy") or f"lubdub worker resume {worker_id}"
        return ForcedOffline(worker_id, str(remedy), str(error.fields.get("reason") or ""))
    if isinstance(error, WorkerOffline) and error.fields.get("reason") == "FORCED_OFFLINE":
        return ForcedOffline(worker_id, f"lubdub worker resume {worker_id}")
    return None


def retry_after(header: str) -> float:
    """Parses Retry-After into seconds. A proxy may send a date, which counts as not given."""
    return (
        float(min(int(header), MAX_RETRY_AFTER)) if header.isdigit() and header.isascii() and len(header) < 10 else 0.0
    )


def may_retry(error: BaseException) -> bool:
    """Whether the call may succeed later: there was no answer, or the server asks to retry."""
    if isinstance(error, ApiError):
        return error.status in (408, 429, 502, 503, 504)
    return isinstance(error, NoAnswer)


def wait_of(error: Optional[BaseException]) -> float:
    """How many seconds the server asks to wait."""
    return error.retry_after if isinstance(error, ApiError) else 0.0
