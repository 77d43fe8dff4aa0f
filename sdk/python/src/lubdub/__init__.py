"""Lubdub for Python: a client, tracked tasks, workers."""

from . import types
from ._events import EventsMissing, EventStream
from ._version import __version__
from .asyncclient import AsyncClient, AsyncEventStream
from .attempt import Attempt
from ._creations import Enqueued, NewTask, created
from .client import Client
from .ends import (
    Cancelled,
    ClientClosed,
    DeadlineExceeded,
    End,
    Expired,
    LeaseEnded,
    Lost,
    Stopping,
    Stuck,
    Superseded,
    TaskTimeout,
)
from .errors import (
    AnswerError,
    ApiError,
    ClosedError,
    ConfigurationError,
    EndedError,
    ForcedOffline,
    ForkedError,
    LubdubError,
    NoAnswer,
    OutputError,
    TaskExpired,
    TaskFailed,
    TaskNotFound,
    may_retry,
)
from .failures import Failure, Permanent, RetryAfter, Snooze, Stopped
from .metrics import AttemptEnd, Metrics
from .track import Tracking
from .worker import Unfinished, Worker
from .webhooks import Verifier, WebhookError, WebhookMessage

__all__ = [
    "AnswerError",
    "ApiError",
    "AsyncClient",
    "AsyncEventStream",
    "Attempt",
    "AttemptEnd",
    "Cancelled",
    "Client",
    "ClientClosed",
    "ClosedError",
    "ConfigurationError",
    "DeadlineExceeded",
    "End",
    "EndedError",
    "Enqueued",
    "EventStream",
    "EventsMissing",
    "Expired",
    "Failure",
    "ForcedOffline",
    "ForkedError",
    "LeaseEnded",
    "Lost",
    "LubdubError",
    "Metrics",
    "NewTask",
    "NoAnswer",
    "OutputError",
    "Permanent",
    "RetryAfter",
    "Snooze",
    "Stopped",
    "Stopping",
    "Stuck",
    "Superseded",
    "TaskExpired",
    "TaskFailed",
    "TaskNotFound",
    "TaskTimeout",
    "Tracking",
    "Unfinished",
    "Verifier",
    "WebhookError",
    "WebhookMessage",
    "Worker",
    "__version__",
    "created",
    "may_retry",
    "types",
]
