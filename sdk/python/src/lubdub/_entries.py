"""What a heartbeat loop knows about an attempt, and what a heartbeat reports of it."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Dict, List, NamedTuple, Optional

from ._call import Call, path_of, write
from ._endpoints import Endpoints
from .errors import ConfigurationError

MAX_CHECKPOINT = 16 << 10  # bytes of a checkpoint as JSON
MAX_DEPTH = 100  # levels of its arrays and objects
MAX_REPORTS = 1 << 20  # bytes of progress and checkpoints per request


def key_of(task_id: str, attempt: int) -> str:
    """The key of an attempt."""
    return f"{task_id}/{attempt}"


class Report(NamedTuple):
    """The newest progress and checkpoint of an attempt, each with the version of the report that set it; 0: none. It is replaced as a
    whole, so that any thread may read it without a lock."""

    progress: int = 0
    pct: Optional[float] = None
    message: Optional[str] = None
    checkpoint: int = 0
    details: str = ""  # the checkpoint as JSON

    @property
    def version(self) -> int:
        """The version of the newest change."""
        return max(self.progress, self.checkpoint)

    def with_progress(self, pct: float, message: Optional[str]) -> Report:
        """The report after progress; message: None keeps the one before."""
        return self._replace(
            progress=self.version + 1, pct=pct, message=message if message is not None else self.message
        )

    def with_checkpoint(self, details: str) -> Report:
        """The report after a checkpoint."""
        return self._replace(checkpoint=self.version + 1, details=details)

    def newer(self, delivered: int) -> bytes:
        """What is newer than a version, as fields of a heartbeat with a comma before each."""
        fields: Dict[str, Any] = {}
        if self.progress > delivered:
            fields["progressPct"] = self.pct
            if self.message is not None:
                fields["message"] = self.message
        written = b"," + write(fields)[1:-1] if fields else b""
        if self.checkpoint > delivered:
            written += b',"details":' + self.details.encode()
        return written


def encoded(checkpoint: Any) -> str:
    """Encodes a checkpoint, and checks that it can be sent: a heartbeat that is refused because of it would report no attempt."""
    if checkpoint is None:
        raise ConfigurationError("a checkpoint is any JSON value except None, which means that no checkpoint was set")
    try:
        written = write(checkpoint)
    except ConfigurationError as error:
        raise ConfigurationError(f"the checkpoint cannot be sent: {error}") from None
    if len(written) > MAX_CHECKPOINT:
        raise ConfigurationError(
            f"the checkpoint cannot be sent: it has {len(written)} bytes as JSON, and a server takes {MAX_CHECKPOINT}; put the data "
            "elsewhere and send where it is"
        )
    depth = _depth_of(written.decode())
    if depth > MAX_DEPTH:
        raise ConfigurationError(
            f"the checkpoint cannot be sent: it is nested {depth} levels deep, and a server takes {MAX_DEPTH}; set it as a string"
        )
    return written.decode()


def _depth_of(written: str) -> int:
    """How deeply the arrays and objects of a JSON text are nested."""
    brackets = re.findall(r"[\[\]{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", written))
    return max(accumulate((1 if bracket in "[{" else -1 for bracket in brackets), initial=0))


class BeatEntry:
    """An attempt in the heartbeat loop. interval is the attempt's own in seconds; 0: it follows its worker's heartbeat."""

    __slots__ = (
        "key",
        "task_id",
        "attempt",
        "token",
        "interval",
        "timeout",
        "report",
        "delivered",
        "sending",
        "omitted",
        "due",
        "fresh",
        "warned",
        "sent",
        "started",
        "limit",
        "last",
    )

    def __init__(self, task_id: str, attempt: int, token: str = "", interval: float = 0, timeout: float = 0) -> None:
        self.key, self.task_id, self.attempt = key_of(task_id, attempt), task_id, attempt
        self.token, self.interval, self.timeout = token, interval, timeout
        self.report = Report()
        self.delivered = self.sending = 0  # versions of the report: acknowledged, in flight
        self.omitted = 0  # heartbeats in a row that had no room for the report
        self.due = self.sent = 0.0
        self.fresh, self.warned, self.started = True, False, True
        self.last = False  # its report goes alone, before the attempt is returned
        self.limit = (
            0.0  # seconds after which the heartbeat process fails the task if this process is blocked; 0: never
        )

    @property
    def own(self) -> bool:
        """Whether the attempt needs its own heartbeats in addition to its worker's."""
        return self.started and self.interval > 0

    @property
    def unsent(self) -> bool:
        """Whether some of the report is not acknowledged."""
        return self.report.version > self.delivered

    def deliver(self, version: int) -> None:
        """The report was acknowledged up to a version."""
        self.delivered = max(self.delivered, version)


def last_beat(entry: BeatEntry, token: str, endpoints: Optional[Endpoints] = None) -> Call:
    """The heartbeat of an attempt that sends its report before its completion or return."""
    return Call(
        "POST",
        path_of("/v1/tasks/{}/heartbeat", (entry.task_id,)),
        body=write({"attempt": entry.attempt})[:-1] + entry.report.newer(entry.delivered) + b"}",
        endpoints=endpoints,
        token=token,
    )


def items_of(batch: List[BeatEntry], tokens: bool = True) -> bytes:
    """The list of attempts in a request. Reports that have no room wait for the next one, which begins with those that waited longest."""
    left = MAX_REPORTS
    fields: Dict[str, bytes] = {}
    for entry in sorted(batch, key=lambda e: -e.omitted):
        report = entry.report  # another thread may replace it
        written = report.newer(entry.delivered)
        if len(written) <= left and not entry.last:
            left -= len(written)
            entry.sending, entry.omitted, fields[entry.key] = report.version, 0, written
        else:
            entry.sending, entry.omitted, fields[entry.key] = entry.delivered, entry.omitted + 1, b""
    items: List[bytes] = []
    for entry in batch:
        item: Dict[str, Any] = {"taskId": entry.task_id, "attempt": entry.attempt}
        if tokens:
            item["taskToken"] = entry.token
        items.append(write(item)[:-1] + fields[entry.key] + b"}")
    return b"[" + b",".join(items) + b"]"


__all__ = ["MAX_CHECKPOINT", "BeatEntry", "Report", "encoded", "items_of", "key_of", "last_beat"]
