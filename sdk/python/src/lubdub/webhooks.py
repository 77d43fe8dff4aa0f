"""Verifies webhook messages, as Standard Webhooks 1.0 defines."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Any, Callable, Dict, List, Mapping, Union, cast

from .errors import LubdubError


class WebhookError(LubdubError):
    """A message is not the webhook's: answer with 401 and do nothing else."""


class WebhookHeaders(WebhookError):
    """webhook-id, webhook-timestamp or webhook-signature is missing or malformed."""


class WebhookTime(WebhookError):
    """The message was signed too long ago, or by a clock that is ahead."""


class WebhookSignature(WebhookError):
    """No secret matches the signature."""


class WebhookMessage:
    """The content of a message. The id is the same in each repeat: a receiver that has processed it can skip repeats."""

    def __init__(self, id: str, type: str, timestamp: str, data: Any) -> None:
        self.id, self.type, self.timestamp, self.data = id, type, timestamp, data


class Verifier:
    """Verifies with a webhook's secrets, whsec_…: several while a secret rotates. tolerance is how far a message's timestamp may be from
    now, in seconds."""

    def __init__(self, *secrets: str, tolerance: float = 300, now: Callable[[], float] = time.time) -> None:
        self._keys: List[bytes] = []
        self.tolerance, self.now = tolerance, now
        for number, secret in enumerate(secrets, 1):
            try:
                key = base64.b64decode(secret[len("whsec_") :], validate=True) if secret.startswith("whsec_") else b""
            except (binascii.Error, ValueError):
                key = b""
            if not 24 <= len(key) <= 64:
                raise ValueError(f"secret {number} is not whsec_ followed by the base64 of 24 to 64 bytes")
            self._keys.append(key)
        if not secrets:
            raise ValueError("give the webhook's secret")

    def verify(self, headers: Mapping[str, str], body: Union[bytes, bytearray]) -> WebhookMessage:
        """Returns a message if its headers prove that it is the webhook's. The body is the request's, byte for byte."""
        lower: Dict[str, str] = {name.lower(): headers[name] for name in headers}
        id, at, signatures = (lower.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
        if not id or not signatures or not (at.isascii() and at.isdigit()) or len(at) > 15:
            raise WebhookHeaders("the webhook's headers are not complete")
        if abs(self.now() - int(at)) > self.tolerance:
            raise WebhookTime("the webhook's timestamp is too far from now")
        if not self._signed(f"{id}.{at}.".encode() + bytes(body), signatures):
            raise WebhookSignature("the webhook's signature matches none of the secrets")
        try:
            message: Any = json.loads(bytes(body))
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise WebhookError("the webhook's body is not a JSON object")
        fields = cast(Dict[str, Any], message)
        return WebhookMessage(id, str(fields.get("type", "")), str(fields.get("timestamp", "")), fields.get("data"))

    def _signed(self, signed: bytes, signatures: str) -> bool:
        found = False
        for key in self._keys:
            want = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
            for one in signatures.split(" "):
                found |= hmac.compare_digest(one.encode("utf-8", "replace"), want)
        return found
