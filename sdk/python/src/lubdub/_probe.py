"""Answers the server's probe: 200 while the process's heartbeat loop runs, 503 when it does not. It makes no calls itself."""

from __future__ import annotations

import http.server
from typing import Any, Callable, Tuple

from . import _exit
from ._identity import hostname
from .errors import ConfigurationError


class Probe:
    """A listener at an address such as ":8081"."""

    def __init__(self, address: str, url: str, alive: Callable[[], bool]) -> None:
        host, _, port = address.rpartition(":")
        host = host.strip("[]")

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = 5

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                good = alive()
                body = b"alive\n" if good else b"not alive\n"
                self.send_response(200 if good else 503)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_GET

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # the client has disconnected

        try:
            self.server = Listener((host, int(port)), Handler)
        except (OSError, ValueError, OverflowError) as error:
            raise ConfigurationError(
                f"the probe cannot listen at {address!r}: {error}; give host:port, or :port"
            ) from None
        at: Tuple[Any, ...] = self.server.server_address
        shown = hostname() if host in ("", "0.0.0.0", "::") else host
        self.url = url or f"http://{'[' + shown + ']' if ':' in shown else shown}:{at[1]}/"
        _exit.start(self.serve, "lubdub-probe")

    def serve(self) -> None:
        """Answers until it is closed."""
        over = _exit.blocked(self.server.shutdown)
        try:
            self.server.serve_forever()
        finally:
            over()

    def close(self) -> None:
        """Stops it."""
        self.server.shutdown()
        self.server.server_close()
