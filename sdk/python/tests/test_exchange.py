"""Completions that share a request."""

import json
import threading
from typing import Any, Callable, Dict, List, Optional, cast

from lubdub import errors
from lubdub._call import Call, Caller
from lubdub._endpoints import Endpoints
from lubdub._exchange import Exchange

from .helpers import TestCase


class Answering:
    """A caller whose server answers each completion by the status in its outcome; before is called with the number of the request."""

    def __init__(self, before: Callable[[int], None]) -> None:
        self.before, self.requests = before, cast("List[List[str]]", [])

    def over(self, _: Call) -> bool:
        return False

    def make(self, call: Call) -> bytes:
        completions = json.loads(call.body or b"")["completed"]
        self.requests.append([call.path, *(one["taskId"] for one in completions)])
        self.before(len(self.requests))
        results = [
            {"taskId": one["taskId"], "status": one["outcome"], "error": "store_unavailable", "retryAfterMs": 1500}
            for one in completions
        ]
        return json.dumps({"completed": results}).encode()


class ExchangeTest(TestCase):
    def complete(self, exchange: Exchange, task: str, status: int) -> Optional[Dict[str, Any]]:
        written = json.dumps({"outcome": status}).encode()
        return exchange.complete(Endpoints(["http://127.0.0.1:1"], False), "w1", "t", task, written, None)

    def test_completions_share_a_request(self) -> None:
        arrived, release = threading.Event(), threading.Event()

        def before(n: int) -> None:
            if n == 1:
                arrived.set()
                release.wait()

        caller = Answering(before)
        exchange = Exchange(cast(Caller, caller))
        found: Dict[str, Any] = {}

        def one(task: str, status: int) -> None:
            try:
                found[task] = self.complete(exchange, task, status)
            except errors.LubdubError as error:
                found[task] = error

        threads = [threading.Thread(target=one, args=("t0", 200))]
        threads[0].start()
        arrived.wait()
        for i, status in enumerate((200, 403, 503)):
            threads.append(threading.Thread(target=one, args=(f"t{i + 1}", status)))
            threads[-1].start()
            while len(exchange.waiting) <= i:
                pass
        release.set()
        for thread in threads:
            thread.join()
        path = "/v1/workers/w1/exchange"
        self.assertEqual(caller.requests, [[path, "t0"], [path, "t1", "t2", "t3"]])
        self.assertEqual((found["t0"]["status"], found["t1"]["status"]), (200, 200))
        self.assertIsNone(found["t2"], "a completion that the token does not open is sent on its own")
        self.assertIsInstance(found["t3"], errors.StoreUnavailable)
        self.assertEqual(found["t3"].retry_after, 1.5)

    def test_refused_and_unanswered(self) -> None:
        def refuse(_: int) -> None:
            raise errors.ApiError("POST /v1/workers/w1/exchange", 404, "not_found")

        def fail(_: int) -> None:
            raise errors.NoAnswer("POST /v1/workers/w1/exchange: no answer")

        self.assertIsNone(self.complete(Exchange(cast(Caller, Answering(refuse))), "t1", 200))
        with self.assertRaises(errors.NoAnswer):
            self.complete(Exchange(cast(Caller, Answering(fail))), "t1", 200)
