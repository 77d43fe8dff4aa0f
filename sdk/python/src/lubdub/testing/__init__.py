"""A Lubdub server in memory for users' own tests, with a clock in the test's hand."""

from ._hand import HandClock
from ._server import Request, Server, TOKEN

__all__ = ["HandClock", "Request", "Server", "TOKEN"]
