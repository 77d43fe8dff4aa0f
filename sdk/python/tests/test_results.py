"""Results: all that a client waits for share one request."""

import datetime
import threading
from typing import Any, Callable, List, Optional, Tuple
from unittest import mock

import lubdub
from lubdub import _results, errors
from lubdub._clock import Event
from lubdub._http import Response
from lubdub.testing import Server

from .helpers import PATIENCE, TestCase


class Waiting(Server):
    """Counts the requests in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.in_flight = self.most = 0
        self.connecting = False  # requests cannot be cancelled
        self.before_return: Callable[[Event], None] = lambda _: None

    def send(self, *arguments: Any, **named: Any) -> Response:
        cancel: Optional[Event] = arguments[5]
        if cancel is None:  # a call of another kind
            return super().send(*arguments, **named)
        with self.lock:
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
        try:
            answer = super().send(*arguments[: 5 if self.connecting else 6])
            self.before_return(cancel)
            return answer
        finally:
            with self.lock:
                self.in_flight -= 1

    def end(self, *task_ids: str, state: str = "SUCCEEDED", **fields: Any) -> None:
        """Ends tasks."""
        for task_id in task_ids:
            vars(self.task(task_id)).update({"output": task_id, **fields, "state": state})
        self.store.wake()

    def bodies(self) -> List[Tuple[List[str], int]]:
        """The ids and the waitMs of each request."""
        return [(r.json()["taskIds"], r.json()["waitMs"]) for r in self.seen("/v1/tasks:wait", "POST")]


class Waiter:
    """A thread that waits for a result."""

    def __init__(self, server: Server, client: lubdub.Client, task_id: str, timeout: Any = None) -> None:
        self.value: Any = None
        self.error: Optional[BaseException] = None
        self.over = False

        def run() -> None:
            try:
                self.value = client.result(task_id, timeout)
            except BaseException as error:
                self.error = error
            self.over = True

        server.hand.spawn(run, "waiter")
        server.hand.settle()


class Results(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.server = Waiting()
        self.client = self.server.client()
        self.addCleanup(self.client.close)

    def wait(self, task_id: str, timeout: Any = None) -> Waiter:
        return Waiter(self.server, self.client, task_id, timeout)

    def tasks(self, count: int) -> List[str]:
        return [self.server.enqueue("t") for _ in range(count)]

    def ended(self) -> str:
        """A task that has ended."""
        task_id = self.server.enqueue("t")
        self.server.end(task_id)
        return task_id

    def result(self, task_id: str) -> Any:
        return self.server.hand.run(lambda: self.client.result(task_id))

    def asking(self) -> List[threading.Thread]:
        """The threads that ask for results."""
        return [thread for thread in threading.enumerate() if thread.name == "lubdub-results"]

    def gone(self, thread: threading.Thread) -> None:
        """The thread ends, and its request."""
        thread.join(PATIENCE)
        self.assertEqual((thread.is_alive(), self.server.in_flight), (False, 0))

    def until_over(self, *waiters: Waiter) -> None:
        self.server.until("the waiters are over", lambda: all(waiter.over for waiter in waiters))

    def test_a_value(self) -> None:
        first, second = self.tasks(2)
        self.server.end(first, output={"rows": [1, None]})
        self.assertEqual(self.result(first), {"rows": [1, None]})
        waiter = self.wait(second)
        self.server.advance(65)
        self.assertFalse(waiter.over)
        self.server.end(second, output=None)
        self.until_over(waiter)
        self.assertEqual((waiter.value, waiter.error), (None, None))
        waits = [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480, 30000]
        self.assertEqual(self.server.bodies(), [([first], 10)] + [([second], wait) for wait in waits])

    def test_a_worker_of_the_test_server(self) -> None:
        envelope, began = self.server.dispatch(), self.server.clock.now()
        waiter = self.wait(envelope["taskId"])
        self.server.hand.run(lambda: self.client.run(envelope, lambda task: f"{task.task_id} is done"))
        self.until_over(waiter)
        self.assertEqual((waiter.value, self.server.clock.now()), (f"{envelope['taskId']} is done", began))

    def test_a_failure_and_a_cancel_have_the_whole_task(self) -> None:
        failed, silent, cancelled, given_up, queued = self.tasks(5)
        began = self.server.clock.now()
        waiters = [self.wait(task_id) for task_id in (failed, silent, cancelled, given_up, queued)]
        error = {"category": "USER_CODE", "message": "no such file"}
        self.server.end(failed, state="FAILED", reason="WORKER_REPORTED", error=error)
        self.server.end(silent, state="FAILED", reason="HEARTBEAT_TIMEOUT")
        self.server.end(cancelled, state="CANCELLED", cancel="user_requested", reason="TERMINATED")
        self.server.end(given_up, state="CANCELLED", error={"category": "CANCELLED", "message": "no longer needed"})
        self.until_over(*waiters[:4])
        self.server.cancel(queued, "enough")
        self.until_over(*waiters)
        self.assertLess(self.server.clock.now() - began, 0.05)
        found = [waiter.error for waiter in waiters]
        expected = [
            f"task {failed} FAILED (WORKER_REPORTED): no such file",
            f"task {silent} FAILED (HEARTBEAT_TIMEOUT)",
            f"task {cancelled} CANCELLED (TERMINATED): user_requested",
            f"task {given_up} CANCELLED: no longer needed",
            f"task {queued} CANCELLED: enough",
        ]
        self.assertEqual([str(error) for error in found], expected)
        for one in found:
            assert isinstance(one, lubdub.TaskFailed)
            self.assertEqual(one.task, self.server.store.shown(self.server.task(one.task["taskId"])))

    def test_a_task_that_does_not_exist(self) -> None:
        with self.assertRaises(errors.TaskNotFound) as caught:
            self.result("gone")
        self.assertEqual((caught.exception.status, caught.exception.code), (404, "task_not_found"))
        self.assertIn("no task gone; finished tasks are removed at the end of their retention", str(caught.exception))

    def test_an_invalid_id_is_not_sent_with_those_of_others(self) -> None:
        for task_id in ("", "a b", "-a", "a\n", "a" * 129):
            self.assertRaises(lubdub.ConfigurationError, self.client.result, task_id)
        self.assertEqual(self.server.requests, [])

    def test_five_hundred_results_share_one_request(self) -> None:
        tasks = self.tasks(500)
        waiters: List[Waiter] = []
        for task_id in tasks:
            waiters.append(self.wait(task_id))
            self.server.advance(0.001)
        self.assertEqual(len(self.asking()), 1)
        before = len(self.server.requests)
        self.assertLess(before, 40)
        self.server.advance(1)
        self.assertEqual(self.server.bodies()[-1][0], tasks)
        self.server.end(*tasks)
        self.until_over(*waiters)
        self.assertEqual([waiter.value for waiter in waiters], tasks)
        self.assertEqual(self.server.most, 1)
        self.assertLess(len(self.server.requests) - before, 15)  # an answer has 100 of them
        self.assertEqual({request.status for request in self.server.requests}, {200})

    def test_many_ends_share_an_answer(self) -> None:
        tasks = self.tasks(300)
        waiters = [self.wait(task_id) for task_id in tasks]
        self.server.advance(10)
        before = len(self.server.requests)
        for task_id in tasks:
            self.server.end(task_id)
            self.server.advance(0.001)
        self.until_over(*waiters)
        self.assertLess(len(self.server.requests) - before, 60)

    def test_added_tasks_are_asked_for_soon(self) -> None:
        slow, fast, other = self.tasks(3)
        self.wait(slow)
        self.server.advance(10)
        for added in (fast, other):
            self.server.end(added)
            before, began = len(self.server.requests), self.server.clock.now()
            self.until_over(self.wait(added))
            replaced, second = self.server.requests[before - 1 : before + 1]
            self.assertEqual((replaced.status, second.status), (0, 200))  # the first was cancelled
            self.assertEqual((second.at, self.server.bodies()[before]), (began, ([slow, added], 10)))
            self.server.advance(10)
        self.assertEqual(self.server.most, 1)

    def test_many_additions_let_requests_finish(self) -> None:
        tasks = self.tasks(30)
        for task_id in tasks:
            self.wait(task_id)
            self.server.advance(0.05)
        self.server.advance(1)
        self.assertEqual({request.status for request in self.server.requests[:-1]}, {200})
        self.assertEqual(self.server.bodies()[-1][0], tasks)

    def test_an_answer_that_has_arrived_is_used_though_it_was_cancelled(self) -> None:
        task_id = self.ended()
        self.server.before_return = Event.set
        self.assertEqual(self.result(task_id), task_id)
        self.assertEqual(len(self.server.requests), 1)

    def test_more_tasks_than_a_request_may_name_take_turns(self) -> None:
        self.assertEqual(_results.MAX_IDS, 1000)
        tasks = self.tasks(8)
        with mock.patch.object(_results, "MAX_IDS", 3):
            waiters = [self.wait(task_id) for task_id in tasks]
            self.server.advance(1)
            before = len(self.server.requests)
            self.server.advance(7.5)
            bodies = self.server.bodies()[before:]
            self.assertEqual({(len(ids), wait) for ids, wait in bodies}, {(3, 375)})
            order = [task_id for ids, _ in bodies for task_id in ids]
            self.assertGreater(len(order), 16)
            for at in range(len(order) - 8):  # any 8 in a row are all tasks
                self.assertEqual(set(order[at : at + 8]), set(tasks))
            self.server.end(tasks[7])
            self.until_over(waiters[7])
            self.server.end(*tasks)
            self.until_over(*waiters)

    def test_503_is_repeated_after_retry_after(self) -> None:
        first, second = self.tasks(2)
        self.server.end(first, second)
        answers: List[Any] = [(503, {"error": "store_unavailable"}, {"Retry-After": "7"})] * 9
        self.server.intercept = lambda _: answers.pop() if answers else None
        with self.assertLogs("lubdub", "WARNING") as logs:
            waiter = self.wait(first)
            self.server.advance(1)
            other = self.wait(second)  # an addition does not shorten the pause
            self.until_over(waiter, other)
        times = [request.at for request in self.server.requests]
        self.assertEqual(len(times), 10)  # more than the client's tries
        for before, after in zip(times, times[1:]):
            self.assertGreaterEqual(after - before, 7)
        self.assertEqual((waiter.value, other.value), (first, second))
        self.assertEqual(len(logs.output), 2)  # it begins, it ends
        answers = [(503, {"error": "store_unavailable"}, {"Retry-After": "3600"})]
        with self.assertLogs("lubdub", "WARNING"):
            waiter = self.wait(self.server.enqueue("t"), 5)
        (thread,) = self.asking()
        self.server.advance(5)  # the end of the last wait ends the pause
        self.gone(thread)
        self.assertIsInstance(waiter.error, TimeoutError)

    def test_an_addition_before_an_error_does_not_shorten_the_pause(self) -> None:
        def overloaded(_: Event) -> None:
            raise errors.Overloaded("POST /v1/tasks:wait", 503, "overloaded", retry_after=7)

        first, second = self.tasks(2)
        self.wait(first)
        self.server.before_return = overloaded
        self.wait(second)
        with self.assertLogs("lubdub", "WARNING"):
            self.server.end(first)
            self.server.advance(6.9)
        self.assertEqual(len(self.server.requests), 1)

    def test_one_thread_is_started(self) -> None:
        with mock.patch.object(self.server.clock, "spawn") as spawn:
            for task_id in self.tasks(2):  # both are added before it runs
                self.assertRaises(TimeoutError, self.client.result, task_id, 0)
        spawn.assert_called_once()
        spawn.call_args[0][0]()
        self.assertEqual(self.server.requests, [])

    def test_an_outage_is_waited_for(self) -> None:
        task_id = self.server.enqueue("t")
        self.server.down()
        with self.assertLogs("lubdub", "WARNING"):
            waiter = self.wait(task_id)
            self.server.advance(100)
            self.assertFalse(waiter.over)
            self.server.up()
            self.server.end(task_id)
            self.until_over(waiter)
        self.assertEqual(waiter.value, task_id)

    def test_a_refusal_fails_all(self) -> None:
        tasks = self.tasks(3)
        waiters = [self.wait(task_id) for task_id in tasks]
        self.server.intercept = lambda _: (403, {"error": "forbidden", "message": "no"})
        self.server.advance(31)
        self.assertEqual([type(waiter.error) for waiter in waiters], [errors.Forbidden] * 3)
        self.assertEqual([request.status for request in self.server.requests], [200, 403])
        self.server.intercept = lambda _: (404, {"error": "not_found"})  # an older server
        with self.assertRaises(errors.NotFound) as caught:
            self.result(tasks[0])
        self.assertNotIsInstance(caught.exception, errors.TaskNotFound)
        wrong: List[Any] = [{}, {"tasks": {}, "notFound": []}, {"tasks": [{"taskId": tasks[0]}], "notFound": []}]
        for body in wrong:
            self.server.intercept = lambda _, body=body: (200, body)
            with self.assertRaises(lubdub.AnswerError):
                self.result(tasks[0])
        self.assertEqual(len(self.server.requests), 6)

    def test_answers_that_are_empty_too_early_are_not_repeated_at_once(self) -> None:
        self.server.intercept = lambda _: (200, {"tasks": [], "notFound": []})
        self.wait(self.server.enqueue("t"))
        self.server.advance(60)
        self.assertLess(len(self.server.requests), 100)

    def test_an_unexpected_error_reaches_the_callers(self) -> None:
        def broken(_: Event) -> None:
            raise RuntimeError("a bug")

        task_id = self.ended()
        self.server.before_return = broken
        with mock.patch.object(threading, "excepthook"):
            with self.assertRaisesRegex(RuntimeError, "a bug"):
                self.result(task_id)
            for thread in self.asking():
                thread.join(PATIENCE)
        self.server.before_return = lambda _: None
        self.assertEqual(self.result(task_id), task_id)

    def test_a_timeout_of_one_leaves_the_others(self) -> None:
        first, second = self.tasks(2)
        patient = [self.wait(first), self.wait(second)]
        hasty = [self.wait(first, 20), self.wait(second, datetime.timedelta(seconds=20)), self.wait(first, 0)]
        self.server.advance(19)
        self.assertEqual([waiter.over for waiter in hasty], [False, False, True])
        self.server.advance(1)
        for waiter in hasty:
            self.assertIsInstance(waiter.error, TimeoutError)
        self.assertEqual(str(hasty[0].error), f"task {first} has not ended within 20 s")
        self.assertEqual([waiter.over for waiter in patient], [False, False])
        self.server.advance(60)
        self.assertEqual(self.server.bodies()[-1][0], [first, second])
        self.server.end(first, second)
        self.until_over(*patient)
        self.assertEqual([waiter.value for waiter in patient], [first, second])

    def test_the_request_ends_when_no_caller_waits(self) -> None:
        waiters = [self.wait(self.server.enqueue("t"), seconds) for seconds in (3, 4)]
        self.server.advance(1)
        (thread,) = self.asking()
        self.assertTrue(thread.daemon)
        self.server.advance(2)
        self.assertEqual((waiters[0].over, self.server.in_flight), (True, 1))
        self.server.advance(1)
        self.until_over(*waiters)
        self.gone(thread)
        self.result(self.ended())  # a later call starts again

    def test_two_callers_share_a_task(self) -> None:
        task_id = self.server.enqueue("t")
        waiters = [self.wait(task_id), self.wait(task_id), self.wait(task_id, 1)]
        self.server.advance(2)
        self.server.end(task_id, output=7)
        self.until_over(*waiters)
        self.assertEqual([waiter.value for waiter in waiters], [7, 7, None])
        self.assertTrue(all(ids == [task_id] for ids, _ in self.server.bodies()))

    def test_close_ends_a_pause(self) -> None:
        self.server.intercept = lambda _: (503, {"error": "overloaded"}, {"Retry-After": "3600"})
        with self.assertLogs("lubdub", "WARNING"):
            waiter = self.wait(self.server.enqueue("t"))
        self.client.close()
        self.server.hand.settle()
        self.assertIsInstance(waiter.error, lubdub.ClosedError)

    def test_close_fails_all(self) -> None:
        tasks = self.tasks(2)
        waiters = [self.wait(task_id) for task_id in tasks]
        (thread,) = self.asking()
        self.client.close()
        self.server.hand.settle()
        self.gone(thread)
        self.assertEqual([type(waiter.error) for waiter in waiters], [lubdub.ClosedError] * 2)
        self.assertRaises(lubdub.ClosedError, self.client.result, tasks[0])

    def test_close_does_not_wait_for_the_request(self) -> None:
        self.server.connecting = True
        waiter = self.wait(self.server.enqueue("t"))
        self.client.close()
        self.server.hand.settle()
        self.assertIsInstance(waiter.error, lubdub.ClosedError)
        self.server.advance(30)
        self.assertEqual(self.server.in_flight, 0)
