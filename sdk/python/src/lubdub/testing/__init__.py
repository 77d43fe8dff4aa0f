"""For your own tests: an in-memory Lubdub server with a clock that the test controls, and a call that runs one handler without it."""

from ._hand import HandClock
from ._run import Recorded, run
from ._server import Request, Server, TOKEN

__all__ = ["HandClock", "Recorded", "Request", "Server", "TOKEN", "run"]
