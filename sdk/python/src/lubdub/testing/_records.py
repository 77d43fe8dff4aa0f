"""The records of the test server: tasks and workers."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .._call import write
from .._entries import MAX_CHECKPOINT
from ._retries import Retries


class Refused(Exception):
    """A refusal."""

    def __init__(self, status: int, code: str, message: str = "", **fields: Any) -> None:
        super().__init__(code)
        self.status = status
        self.body: Dict[str, Any] = {"error": code, "message": message or code, **fields}


def check_details(body: Dict[str, Any], field: str = "details") -> None:
    """Refuses a checkpoint that is too long."""
    details = body.get("details")
    if details is not None and len(write(details)) > MAX_CHECKPOINT:
        raise Refused(
            400, "invalid_request", f"{field} has more than {MAX_CHECKPOINT} bytes without whitespace", field=field
        )


class Task:
    """A task."""

    def __init__(self, id: str, fields: Dict[str, Any]) -> None:
        self.id, self.fields = id, fields
        self.state = "QUEUED" if fields.get("queue") else "DISPATCHED"
        self.attempt = 0 if fields.get("queue") else 1
        self.reason: Optional[str] = None
        self.worker = ""
        self.last_beat = 0.0
        self.ready = 0.0  # since when a worker may claim it
        self.cancel: Optional[str] = None
        self.progress: Dict[str, Any] = {}
        self.last_progress: Optional[Dict[str, Any]] = None
        self.details: Any = None  # the last checkpoint, of any attempt
        self.output: Any = None
        self.error: Optional[Dict[str, Any]] = None
        self.completions: List[Dict[str, Any]] = []  # accepted completions
        self.answers: List[Dict[str, Any]] = []  # to them
        self.waits = False  # it is SCHEDULED, or QUEUED after a snooze
        self.beats = 0  # the number of accepted heartbeats
        self.retries = Retries(fields)

    @property
    def token(self) -> str:
        """The token for the callbacks of the current attempt."""
        return f"task-{self.id}-{self.attempt}"

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in ("SUCCEEDED", "FAILED", "CANCELLED")


class Worker:
    """A worker."""

    def __init__(self, id: str, fields: Dict[str, Any], last_beat: float) -> None:
        self.id, self.fields, self.last_beat = id, fields, last_beat
        self.status = "ONLINE"
        self.draining = self.forced = False
        self.cut = False  # nothing that it sends arrives
        self.seq = self.completed = self.failed = 0
        self.claims: Dict[str, List[Any]] = {}

    @property
    def token(self) -> str:
        """The worker's token."""
        return f"worker-{self.id}"
