"""Where calls go, and what opens them."""

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
    """The addresses of one deployment. The one that answered last is asked first."""

    def __init__(self, urls: Iterable[str], allow_http: bool) -> None:
        self.urls: List[str] = list(dict.fromkeys(check_url(u.strip()) for u in urls if u.strip()))
        self.allow_http = allow_http
        self.at = 0
        if not self.urls:
            raise ConfigurationError("no address: give lubdub.Client the URL of a Lubdub server, or set LUBDUB_URL")

    def first(self) -> "tuple[str, int]":
        """The address to ask first, and its number."""
        at = self.at
        return self.urls[at], at

    def failed(self, at: int) -> None:
        """Moves on from an address that did not answer, unless somebody has."""
        if self.at == at:
            self.at = (at + 1) % len(self.urls)

    def check_secrecy(self) -> None:
        """Refuses addresses to which no token may go."""
        for url in self.urls:
            check_secret(url, self.allow_http)


def check_url(raw: str) -> str:
    """Returns an address without a slash at its end."""
    try:
        parts = urllib.parse.urlsplit(raw)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urllib.parse.urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            "an address is not like https://host:port; see what was given to lubdub.Client or in LUBDUB_URL"
        )
    del port
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"the address of {host} carries credentials; give a token with token= instead")
    if parts.query or parts.fragment:
        raise ConfigurationError(
            f"the address {parts.netloc} has more than a path; scope and token have arguments of their own"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def check_secret(url: str, allow_http: bool) -> None:
    """Refuses to show a token to whoever listens on the way."""
    parts = urllib.parse.urlsplit(url)
    if allow_http or parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return
    raise ConfigurationError(
        f"http://{parts.netloc} would show the token to whoever listens on the way; use https, or allow_http=True where the network is "
        "your own"
    )


def is_loopback(host: str) -> bool:
    """Whether a host is this one, by its name."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Token:
    """The token of control calls: a fixed one, or one that is asked for again once it was refused. Many who are refused at once
    ask once. Its text is in no representation."""

    def __init__(self, source: Union[str, Callable[[], str]]) -> None:
        self._get = source if callable(source) else None
        self._have = "" if callable(source) else check_token(source)
        self._lock = threading.Lock()
        _fork.tell(self)

    def after_fork(self) -> None:
        """Makes the lock anew."""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "<lubdub token>"

    def __bool__(self) -> bool:
        return self._get is not None or self._have != ""

    def current(self) -> str:
        """The token; "": there is none."""
        with self._lock:
            return self._have if self._have else self._fetch()

    def renew(self, refused: str) -> str:
        """Another one after one was refused; the same one: there is no other."""
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
    """The token that was given, or that of the environment."""
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
    """Reads the token in a file; spaces around it are not of it."""
    with open(path, encoding="utf-8") as file:
        token = file.read().strip()
    if not token:
        raise ConfigurationError(f"{path} is empty; put there what `lubdub token` prints")
    return token


def check_token(token: str) -> str:
    """Refuses what cannot be the token of control calls, without repeating any of it."""
    if any(not "!" <= c <= "~" for c in token):
        raise ConfigurationError(
            "the token has characters that no token has; give what `lubdub token` prints, without quotes or spaces"
        )
    kind = token_kind(token)
    if kind in ("task", "worker"):
        raise ConfigurationError(
            f"this is the token of a {kind}, which opens that {kind}'s own calls only; make one for the client with "
            "`lubdub token --role …`"
        )
    return token


def token_kind(token: str) -> str:
    """Reads from a token what it is for, without verifying it; "": it does not say."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return ""
    kind: Any = cast("dict[str, Any]", claims).get("knd") if isinstance(claims, dict) else None
    return kind if isinstance(kind, str) else ""
