"""The retry policy of the test server's tasks, with the defaults of the API."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

DEFAULT: Dict[str, Any] = {
    "maxAttempts": 3,
    "maxLosses": 3,
    "initialBackoffMs": 1000,
    "multiplier": 2,
    "maxBackoffMs": 60_000,
}
LOSSES = ("HEARTBEAT_TIMEOUT", "START_TIMEOUT", "WORKER_LOST")  # reasons
RETRYABLE = ("USER_CODE", "INFRASTRUCTURE", "TIMEOUT")  # categories


class Retries:
    """Counts the failures and the losses of a task. The delays are in seconds; None: there is no other attempt."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        given: Mapping[str, Any] = fields.get("retry") or {}
        self.queued = bool(fields.get("queue"))
        self.policy = {**DEFAULT, **{name: value for name, value in given.items() if value is not None}}
        self.failures = self.losses = 0

    def after_failure(self, error: Mapping[str, Any]) -> Optional[float]:
        """The delay after a failure that a worker has reported."""
        found = error.get("retryable")
        if not self.queued or not (error.get("category") in RETRYABLE if found is None else found):
            return None
        self.failures += 1
        if self.failures >= self.policy["maxAttempts"]:
            return None
        given = error.get("retryAfterMs")
        return self._backoff() if given is None else given / 1000

    def after_loss(self) -> Optional[float]:
        """The delay after a lost attempt."""
        if not self.queued:
            return None
        self.losses += 1
        return self._backoff() if self.losses <= self.policy["maxLosses"] else None

    def after_end(self, reason: str) -> Optional[float]:
        """The delay after an attempt that the server has ended."""
        if reason == "RUN_TIMEOUT":
            return self.after_failure({"category": "TIMEOUT"})
        return self.after_loss() if reason in LOSSES else None

    def _backoff(self) -> float:
        policy = self.policy
        grown = policy["initialBackoffMs"] * policy["multiplier"] ** (self.failures + self.losses - 1)
        return min(policy["maxBackoffMs"], grown) / 1000
