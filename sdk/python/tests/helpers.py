"""Helpers of the tests."""

import http.server
import json
import os
import threading
import unittest
from typing import Any, Callable, Dict, List, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
VARIABLES = (
    "LUBDUB_URL",
    "LUBDUB_TOKEN",
    "LUBDUB_TOKEN_FILE",
    "TERMINATION_GRACE_PERIOD_SECONDS",
    "POD_NAME",
    "NODE_NAME",
    "ZONE",
)

PATIENCE = 60  # seconds; reached only when something is broken

Answer = Tuple[int, Any, Dict[str, str]]


class ReceivedRequest:
    """A request that a real server received."""

    def __init__(self, method: str, path: str, headers: Dict[str, str], body: bytes) -> None:
        self.method, self.path, self.headers, self.body = method, path, headers, body

    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)


class WebServer:
    """A real server on loopback, with answers from a function."""

    def __init__(self, answer: Callable[[ReceivedRequest], Answer]) -> None:
        self.requests: List[ReceivedRequest] = []
        requests = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                request = ReceivedRequest(
                    self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, self.rfile.read(length)
                )
                requests.append(request)
                status, body, headers = answer(request)
                if status == 0:  # the connection is cut
                    self.close_connection = True
                    return
                written = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(written)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(written)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=lambda: self.server.serve_forever(0.01), daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Stops it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class TestCase(unittest.TestCase):
    """Removes Lubdub's variables from the environment."""

    def setUp(self) -> None:
        saved = {name: os.environ.pop(name) for name in VARIABLES if name in os.environ}
        self.addCleanup(os.environ.update, saved)
        for name in VARIABLES:
            self.addCleanup(os.environ.pop, name, None)

    def web(self, answer: Callable[[ReceivedRequest], Answer]) -> WebServer:
        """A real server for the duration of the test."""
        server = WebServer(answer)
        self.addCleanup(server.close)
        return server
