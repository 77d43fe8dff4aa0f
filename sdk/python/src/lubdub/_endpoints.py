"""Endpoints and tokens."""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import threading
import urllib.parse
from typing import Any, Callable, Iterable, List, Optional, Union, cast

from . import _fork
from .errors import ConfigurationError


class Endpoints:
    """The addresses of one deployment. The one that answered last is tried first."""

    def __init__(self, urls: Iterable[str], allow_http: bool) -> None:
        self.urls: List[str] = list(dict.fromkeys(check_url(u.strip()) for u in urls if u.strip()))
        self.allow_http = allow_http
        self.at = 0
        if not self.urls:
            raise ConfigurationError("no address: give lubdub.Client the URL of a Lubdub server, or set LUBDUB_URL")

    def first(self) -> "tuple[str, int]":
        """The address to try first, and its number."""
        at = self.at
        return self.urls[at], at

    def failed(self, at: int) -> None:
        """Moves on from an address that did not answer, unless another thread has."""
        if self.at == at:
            self.at = (at + 1) % len(self.urls)

    def check_plain_http(self) -> None:
        """Refuses addresses that would expose the token."""
        for url in self.urls:
            check_plain_http_url(url, self.allow_http)


def check_url(raw: str) -> str:
    """Returns an address without a trailing slash."""
    try:
        parts = urllib.parse.urlsplit(raw)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urllib.parse.urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            "an address is not like https://host:port; check the address in lubdub.Client or LUBDUB_URL"
        )
    del port
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"the address of {host} contains credentials; give a token with token= instead")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"the address {parts.netloc} has more than a path; give scope and token as arguments")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def check_plain_http_url(url: str, allow_http: bool) -> None:
    """Refuses to send a token in plain text to another host."""
    parts = urllib.parse.urlsplit(url)
    if allow_http or parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return
    raise ConfigurationError(
        f"http://{parts.netloc} would expose the token on the network; use https, or allow_http=True on a network "
        "that you trust"
    )


def is_loopback(host: str) -> bool:
    """Whether a host name is this host's."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Token:
    """The token for control calls: fixed, or read again after a refusal. Many callers that are refused at the same time cause one read. Its
    repr does not contain the token."""

    def __init__(self, source: Union[str, Callable[[], str]]) -> None:
        self._get = source if callable(source) else None
        self._have = "" if callable(source) else check_token(source)
        self._lock = threading.Lock()
        _fork.register(self)

    def after_fork(self) -> None:
        """Replaces the lock."""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "<lubdub token>"

    def __bool__(self) -> bool:
        return self._get is not None or self._have != ""

    def current(self) -> str:
        """The token; "": none."""
        with self._lock:
            return self._have if self._have else self._fetch()

    def renew(self, refused: str) -> str:
        """A new token after one was refused; the same one: there is no other."""
        with self._lock:
            return self._fetch() if self._have == refused else self._have

    def _fetch(self) -> str:
        if self._get is None:
            return self._have
        try:
            found = self._get()
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"the token: {type(error).__name__}: {error}") from error
        self._have = check_token(found)
        return self._have


def token_of(token: Optional[str], token_file: Optional[str], token_func: Optional[Callable[[], str]]) -> Token:
    """The token from the arguments or the environment."""
    if sum(x is not None for x in (token, token_file, token_func)) > 1:
        raise ConfigurationError("give one of token, token_file and token_func")
    if token is not None:
        return Token(token)
    if token_func is not None:
        return Token(token_func)
    if token_file is None and os.environ.get("LUBDUB_TOKEN"):
        return Token(os.environ["LUBDUB_TOKEN"])
    path = token_file or os.environ.get("LUBDUB_TOKEN_FILE", "")
    return Token(lambda: read_token(path)) if path else Token("")


def read_token(path: str) -> str:
    """Reads a token file; surrounding whitespace is removed."""
    with open(path, encoding="utf-8") as file:
        token = file.read().strip()
    if not token:
        raise ConfigurationError(f"{path} is empty; put there what `lubdub token` prints")
    return token


def check_token(token: str) -> str:
    """Refuses a value that cannot be a control token, without repeating it."""
    if any(not "!" <= c <= "~" for c in token):
        raise ConfigurationError(
            "the token has invalid characters; give what `lubdub token` prints, without quotes or spaces"
        )
    kind = token_kind(token)
    if kind in ("task", "worker"):
        raise ConfigurationError(
            f"this is the token of a {kind}, which is valid for that {kind}'s own calls only; make one for the client with "
            "`lubdub token --role …`"
        )
    return token


def token_kind(token: str) -> str:
    """The kind of a token, read without verifying it; "": unknown."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return ""
    kind: Any = cast("dict[str, Any]", claims).get("knd") if isinstance(claims, dict) else None
    return kind if isinstance(kind, str) else ""
