"""An in-memory Lubdub server for your own tests, with a clock that the test controls."""

from ._hand import HandClock
from ._server import Request, Server, TOKEN

__all__ = ["HandClock", "Request", "Server", "TOKEN"]
