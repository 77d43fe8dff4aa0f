"""Sends completions of a worker's attempts together."""

from __future__ import annotations

import threading
from typing import Any, Dict, List, Optional, cast

from ._call import Call, Caller, path_of, read, write
from ._clock import Event
from ._endpoints import Endpoints
from .errors import AnswerError, LubdubError, may_retry, refusal

MOST_TOGETHER = 100  # completions in one request
LONGEST_SHARED = 64 << 10  # bytes; a longer completion is sent on its own
LOOK_EVERY = 0.05  # seconds between two checks whether a waiting completion was cancelled


class Waiting:
    """A completion that waits for its result."""

    def __init__(self, endpoints: Endpoints, task_id: str, written: bytes) -> None:
        self.endpoints, self.task_id, self.written = endpoints, task_id, written
        self.over = False
        self.answer: Optional[Dict[str, Any]] = None
        self.error: Optional[LubdubError] = None

    def settle(self, result: Dict[str, Any]) -> None:
        """Takes its result."""
        status = result.get("status")
        if status == 200:
            self.answer = result
        elif status != 403 and isinstance(status, int):
            self.error = refusal(path_of("POST /v1/tasks/{}/completed", (self.task_id,)), status, {}, write(result))
            self.error.retry_after = float(result.get("retryAfterMs") or 0) / 1000


class Exchange:
    """One request at a time is in flight; completions that come meanwhile share the next one, which the thread of one of them sends."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.cond = threading.Condition()
        self.waiting: List[Waiting] = []
        self.sending = False

    def complete(
        self, endpoints: Endpoints, worker_id: str, token: str, task_id: str, written: bytes, cancel: Optional[Event]
    ) -> Optional[Dict[str, Any]]:
        """Sends a completion once. None: it must be sent on its own, with the token of its task."""
        if len(written) > LONGEST_SHARED:
            return None
        mine = Waiting(endpoints, task_id, written)
        with self.cond:
            self.waiting.append(mine)
            while self.sending and not mine.over:
                self.cond.wait(LOOK_EVERY)
                if cancel is not None and cancel.is_set():
                    if mine in self.waiting:
                        self.waiting.remove(mine)
                    return None
            if not mine.over:
                self.sending = True
        if not mine.over:
            try:
                while not mine.over:
                    self.send(self.take(), worker_id, token, cancel)
            finally:
                with self.cond:
                    self.sending = False
                    self.cond.notify_all()
        if mine.error is not None:
            raise mine.error
        return mine.answer

    def take(self) -> List[Waiting]:
        """Takes those that fit into one request."""
        with self.cond:
            urls = self.waiting[0].endpoints.urls
            some = [one for one in self.waiting if one.endpoints.urls == urls][:MOST_TOGETHER]
            self.waiting = [one for one in self.waiting if one not in some]
            return some

    def send(self, some: List[Waiting], worker_id: str, token: str, cancel: Optional[Event]) -> None:
        """Makes one request, and gives each its result."""
        items = (b'{"taskId":"' + one.task_id.encode() + b'",' + one.written[1:] for one in some)  # ids need no quoting
        call = Call(
            "POST",
            path_of("/v1/workers/{}/exchange", (worker_id,)),
            body=b'{"completed":[' + b",".join(items) + b"]}",
            endpoints=some[0].endpoints,
            token=token,
            tries=1,
            cancel=cancel,
        )
        try:
            found = read(self.caller.make(call)).get("completed")
            results = cast(List[Dict[str, Any]], found if isinstance(found, list) else [])
            if len(results) != len(some):
                raise AnswerError(f"{call.operation}: the answer has not a result for each completion")
            for one, result in zip(some, results):
                one.settle(result)
        except LubdubError as error:
            # an older server, or a token that is not valid: each is sent on its own
            if may_retry(error) and not self.caller.over(call):
                for one in some:
                    one.error = error
        finally:
            with self.cond:
                for one in some:
                    one.over = True
                self.cond.notify_all()
