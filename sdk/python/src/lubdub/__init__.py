"""Lubdub for Python: a client, tracked tasks, workers."""

import typing
import warnings

from . import types
from ._events import EventsMissing, EventStream
from ._version import __version__
from .asyncclient import AsyncClient, AsyncEventStream
from .task import Task
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
    "Task",
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

if typing.TYPE_CHECKING:
    Attempt = Task
else:

    def __getattr__(name: str) -> typing.Any:
        if name == "Attempt":
            warnings.warn(
                "lubdub.Attempt is now lubdub.Task; the next release removes the old name",
                DeprecationWarning,
                stacklevel=2,
            )
            return Task
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
