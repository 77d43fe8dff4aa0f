"""What calls fail with: a class for each code of the contract, and a few of the client's own. None of them holds a token."""

from __future__ import annotations

import http.client
import json
from typing import Any, Dict, Mapping, Optional, Type, cast

MAX_RETRY_AFTER = 3600  # seconds: how long a server is believed in


class LubdubError(Exception):
    """Everything that this package raises."""


class ConfigurationError(LubdubError, ValueError):
    """Something was given that cannot work. Its text names the remedy. Nothing was sent."""


class ClosedError(LubdubError):
    """The client is closed."""


class ForkedError(LubdubError):
    """A handle or a worker was used in a fork of the process that it belongs to, which is the one that beats for it."""


class NoAnswer(LubdubError):
    """No server answered: none could be reached, the connection broke, or it took too long."""

    sent = True  # perhaps: only where it certainly was not is it False


class NotSent(NoAnswer):
    """Not even the connection came about."""

    sent = False


class AnswerError(LubdubError):
    """An answer was not what the contract says. It is not asked for again."""


class OutputError(LubdubError, ValueError):
    """An output cannot be sent: it is not JSON, or larger than a server takes. Nothing was sent and the attempt goes on."""


class EndedError(LubdubError):
    """The attempt is completed or given up; make no further use of its handle."""

    def __init__(self, text: str = "the attempt is completed or given up; make no further use of its handle") -> None:
        super().__init__(text)


class ForcedOffline(LubdubError):
    """An operator forced the worker, or its machine, offline. It stays so until it is resumed; remedy is the command for that."""

    def __init__(self, worker_id: str, remedy: str, reason: str = "") -> None:
        which = f"worker {worker_id}" if worker_id else "this worker's machine"
        super().__init__(
            f"{which} was forced offline{': ' + reason if reason else ''}. It does not register again until it is resumed: "
            f"`{remedy}`"
        )
        self.worker_id, self.remedy = worker_id, remedy


class ApiError(LubdubError):
    """A refusal: an answer that is not 2xx. Its subclasses are the codes of the contract; code is "" where it was not Lubdub that
    answered, as with a proxy."""

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
        # Finds the call in the server's log.
        self.request_id = request_id
        # In seconds: how long the server asks to be left alone; 0: it does not say.
        self.retry_after = retry_after


# fmt: off
class InvalidRequest(ApiError): """400: a field, parameter or header is wrong; fields["field"] names it."""
class InvalidId(ApiError): """400: an id is not like [A-Za-z0-9][A-Za-z0-9._-]{0,127}."""
class InvalidCursor(ApiError): """400: a cursor of events that is not one of this deployment's."""
class InvalidJson(ApiError): """400: the body is not one JSON value of the right kind."""
class UnknownField(ApiError): """400: fields["field"] names it."""
class Unauthorized(ApiError): """401: no token, or none that holds."""
class Forbidden(ApiError): """403: a token for something else."""
class NotFound(ApiError): """404: no such path, or one of the classes below."""
class TaskNotFound(NotFound): """404."""
class RunNotFound(NotFound): """404."""
class WorkerNotFound(NotFound): """404: register again."""
class MachineNotFound(NotFound): """404."""
class ScheduleNotFound(NotFound): """404."""
class WebhookNotFound(NotFound): """404."""
class DeliveryNotFound(NotFound): """404: nothing is kept of it any more."""
class NoWorkersMatch(NotFound): """404: the selector names nobody."""
class MethodNotAllowed(ApiError): """405."""
class RequestTimeout(ApiError): """408: the request took too long to arrive."""
class Conflict(ApiError): """409: one of the classes below."""
class ScheduleExists(Conflict): """409."""
class TaskExists(Conflict): """409."""
class IdempotencyMismatch(Conflict): """409: the idempotency key came with another body before."""
class AttemptMismatch(Conflict): """409: expectedAttempt and receivedAttempt are in fields."""
class TaskAlreadyTerminal(Conflict): """409: fields["state"] says how it ended."""
class WorkerDraining(Conflict): """409: it gets no new tasks."""
class WorkerHeldOffline(Conflict): """409: an operator forced this worker offline; fields["remedy"] is the command that resumes it."""
class NoFreshWorkers(Conflict): """409: freshness took the last; considered and rejected are in fields."""
class NoMatchingWorkers(Conflict): """409: a filter before that did."""
class NoCapacity(Conflict): """409: all that were left are full."""
class WebhookExists(Conflict): """409."""
class WebhookManaged(Conflict): """409: configuration has it; it is changed there."""
class WebhookDisabled(Conflict): """409: switch it on first."""
class WorkerOffline(ApiError): """410: fields["reason"] says why; register again."""
class TaskExpired(ApiError): """410: Lubdub ended the attempt; stop at once."""
class BodyTooLarge(ApiError): """413."""
class UnsupportedMedia(ApiError): """415."""
class Misdirected(ApiError): """421."""
class HeadersTooLarge(ApiError): """431."""
class InternalError(ApiError): """500: a bug; the request id finds it in the log."""
class Overloaded(ApiError): """429 and 503: come again after retry_after."""
class StoreUnavailable(ApiError): """503: Redis did not answer; come again after retry_after."""
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
}


def refusal(operation: str, status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Makes the error of an answer that is not 2xx; the names of headers are in lower case."""
    fields: Dict[str, Any] = {}
    try:
        read = json.loads(body)
        if isinstance(read, dict):
            fields = cast(Dict[str, Any], read)
    except (ValueError, RecursionError):
        pass  # a proxy's page is none of ours, and its status says enough
    code, message = fields.pop("error", ""), fields.pop("message", "")
    code, message = code if isinstance(code, str) else "", message if isinstance(message, str) else ""
    if not code:
        message = http.client.responses.get(status, "")
        if headers.get("location"):
            message += ": redirects are not followed, since a token is for the host that it was given for; use the address itself"
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
    """What a refusal means that says that the worker is held offline; None: it does not say so."""
    if isinstance(error, WorkerHeldOffline):
        found = error.fields.get("workerId")
        worker_id = found if isinstance(found, str) else ""
        remedy = error.fields.get("remedy") or f"lubdub worker resume {worker_id}"
        return ForcedOffline(worker_id, str(remedy), str(error.fields.get("reason") or ""))
    if isinstance(error, WorkerOffline) and error.fields.get("reason") == "FORCED_OFFLINE":
        return ForcedOffline(worker_id, f"lubdub worker resume {worker_id}")
    return None


def retry_after(header: str) -> float:
    """Reads Retry-After, in seconds. A proxy may send a date, and is then waited for as by ourselves."""
    return (
        float(min(int(header), MAX_RETRY_AFTER)) if header.isdigit() and header.isascii() and len(header) < 10 else 0.0
    )


def may_retry(error: BaseException) -> bool:
    """Whether the call that an error comes from may succeed later: there was no answer, or one that asks to come again."""
    if isinstance(error, ApiError):
        return error.status in (408, 429, 502, 503, 504)
    return isinstance(error, NoAnswer)


def wait_of(error: Optional[BaseException]) -> float:
    """How long the server that an error comes from asks to be left alone, in seconds."""
    return error.retry_after if isinstance(error, ApiError) else 0.0
