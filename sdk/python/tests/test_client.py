"""Calls: requests, retries and errors."""

import json
import os
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional
from unittest import mock

import lubdub
from lubdub import errors
from lubdub._clock import Event
from lubdub._http import Stream, Transport
from lubdub.testing import Server

from .helpers import Answer, ReceivedRequest, TestCase


def ok(_: ReceivedRequest) -> Answer:
    return 200, {"tasks": [], "totalCount": 0}, {}


class Names(TestCase):
    def test_former_names_still_work(self) -> None:
        with self.assertWarnsRegex(DeprecationWarning, "lubdub.Task"):
            self.assertIs(lubdub.Attempt, lubdub.Task)
        with self.assertRaises(AttributeError):
            getattr(lubdub, "Attempts")


class Calls(TestCase):
    def test_what_each_request_includes(self) -> None:
        web = self.web(ok)
        with lubdub.Client(web.url + "/", token="secret", tenant_id="acme", user_agent="mailer/2") as client:
            client.list_tasks(state=["QUEUED", "RUNNING"], label=["a=b", "c=d,e"], page_size=7)
            client.cancel_task("task/1", {"reason": "enough"})
        first, second = web.requests
        self.assertEqual(first.headers["authorization"], "Bearer secret")
        self.assertEqual(first.headers["user-agent"], f"mailer/2 lubdub-python/{lubdub.__version__}")
        self.assertEqual(first.headers["accept"], "application/json")
        self.assertNotIn("content-type", first.headers)
        self.assertEqual(
            first.path, "/v1/tasks?state=QUEUED%2CRUNNING&label=a%3Db&label=c%3Dd%2Ce&pageSize=7&tenantId=acme"
        )
        self.assertEqual((second.method, second.path), ("POST", "/v1/tasks/task%2F1/cancel?tenantId=acme"))
        self.assertEqual(second.headers["content-type"], "application/json")
        self.assertEqual(second.json(), {"reason": "enough"})

    def test_connections_are_reused_unless_the_server_has_closed_them(self) -> None:
        ports: List[str] = []
        web = self.web(lambda r: (200, {}, {"Connection": "close"} if len(ports) == 2 else {}))
        with lubdub.Client(web.url) as client:
            for _ in range(4):
                client.version()
                ports.append("")
        self.assertEqual(len(web.requests), 4)

    def test_a_proxy_is_used_for_other_hosts(self) -> None:
        proxy = self.web(ok)
        at = proxy.url.replace("://", "://user:pass@")
        with lubdub.Client("http://lubdub.test:8080", token="secret", allow_http=True, proxy=at) as client:
            client.list_tasks()
        with mock.patch.dict(os.environ, http_proxy=at, no_proxy="near.test"):  # as a user would set it
            with lubdub.Client("http://lubdub.test:8080", token="secret", allow_http=True) as client:
                client.list_tasks()
            with lubdub.Client("http://near.test:9", token="secret", allow_http=True, tries=1) as client:
                self.assertRaises(errors.NotSent, client.list_tasks)
        self.assertEqual(len(proxy.requests), 2)
        for request in proxy.requests:
            self.assertEqual(
                (request.path, request.headers["host"]), ("http://lubdub.test:8080/v1/tasks", "lubdub.test:8080")
            )
            self.assertEqual(request.headers["proxy-authorization"], "Basic dXNlcjpwYXNz")

    def test_errors_are_typed(self) -> None:
        web = self.web(
            lambda _: (
                409,
                {"error": "attempt_mismatch", "message": "no", "expectedAttempt": 3},
                {"X-Request-Id": "r1"},
            )
        )
        with lubdub.Client(web.url, token="secret") as client:
            with self.assertRaises(errors.AttemptMismatch) as caught:
                client.get_task("t")
        error = caught.exception
        self.assertEqual((error.status, error.code, error.request_id), (409, "attempt_mismatch", "r1"))
        self.assertEqual(error.fields, {"expectedAttempt": 3})
        self.assertIsInstance(error, errors.Conflict)
        self.assertEqual(str(error), "GET /v1/tasks/t: 409 attempt_mismatch: no (request r1)")

    def test_every_code_of_the_contract_has_a_class(self) -> None:
        from .helpers import REPOSITORY

        with open(os.path.join(REPOSITORY, "sdk", "go", "v1", "errors.go"), encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("\tCode") and "=" in line]
        self.assertEqual({line.split('"')[1] for line in lines}, set(errors.CODES))

    def test_a_proxys_page_and_a_redirect_are_errors(self) -> None:
        web = self.web(lambda r: (302, b"<html>", {"Location": "http://elsewhere/"}))
        with lubdub.Client(web.url, token="x") as client:
            with self.assertRaises(lubdub.ApiError) as caught:
                client.get_task("t")
        self.assertEqual(caught.exception.code, "")
        self.assertIn("redirects are not followed", str(caught.exception))

    def test_an_answer_that_is_not_json_or_cut_off(self) -> None:
        bodies: List[Any] = [(200, b"nonsense", {}), (200, b"{}", {"Content-Length": "10", "Connection": "close"})]
        web = self.web(lambda _: bodies[0])
        with lubdub.Client(web.url, tries=1, timeout=5) as client:
            self.assertRaises(lubdub.AnswerError, client.version)
            bodies.pop(0)
            self.assertRaises(lubdub.NoAnswer, client.version)

    def test_503_is_retried_after_retry_after(self) -> None:
        server = Server()
        answers: List[Any] = [
            (503, {"error": "store_unavailable"}, {"Retry-After": "7"}),
            (503, {"error": "overloaded"}, {}),
        ]
        server.intercept = lambda r: answers.pop(0) if answers else None
        task = server.enqueue("t")
        with server:
            client = server.client()
            self.assertEqual(server.hand.run(lambda: client.get_task(task))["state"], "QUEUED")
        first, second, third = server.requests
        self.assertGreaterEqual(second.at - first.at, 7)
        self.assertLess(third.at - second.at, 1)

    def test_calls_that_are_not_idempotent_are_not_repeated(self) -> None:
        web = self.web(lambda _: (0, None, {}))
        with lubdub.Client(web.url, token="x") as client:
            self.assertRaises(lubdub.NoAnswer, lambda: client.fire_schedule("s"))
        self.assertEqual(len(web.requests), 1)

    def test_a_creation_is_repeated_under_one_key(self) -> None:
        answers: List[Answer] = [(0, None, {}), (201, {"taskId": "t"}, {})]
        web = self.web(lambda _: answers.pop(0))
        with lubdub.Client(web.url, token="x") as client:
            client.enqueue("q", "t")
        keys = [r.headers["idempotency-key"] for r in web.requests]
        self.assertEqual(len(keys), 2)
        self.assertEqual(keys[0], keys[1])
        self.assertEqual(web.requests[0].body, web.requests[1].body)

    def test_the_next_address_is_used_when_one_does_not_answer(self) -> None:
        good, bad = self.web(ok), self.web(lambda _: (503, {"error": "overloaded"}, {}))
        with lubdub.Client(f"{bad.url}, {good.url}", token="x") as client:
            client.list_tasks()
            client.list_tasks()
        self.assertEqual((len(bad.requests), len(good.requests)), (1, 2))

    def test_pages(self) -> None:
        def answer(r: ReceivedRequest) -> Answer:
            last = "pageToken=p2" in r.path
            return (
                200,
                {
                    "tasks": [{"taskId": "b" if last else "a"}],
                    "totalCount": 2,
                    **({} if last else {"nextPageToken": "p2"}),
                },
                {},
            )

        with lubdub.Client(self.web(answer).url, token="x") as client:
            self.assertEqual([task["taskId"] for task in client.iter_tasks(state=["QUEUED"])], ["a", "b"])

    def test_each_of_many_creations_has_its_own_key_and_outcome(self) -> None:
        web = self.web(
            lambda _: (
                200,
                {
                    "results": [
                        {"status": 201, "taskId": "a"},
                        {"status": 409, "error": "task_exists", "message": "there"},
                    ]
                },
                {},
            )
        )
        with lubdub.Client(web.url, token="x") as client:
            results = client.create_tasks({"tasks": [{"queue": "q", "idempotencyKey": "mine"}, {"queue": "q"}]})[
                "results"
            ]
        sent = [one["idempotencyKey"] for one in web.requests[0].json()["tasks"]]
        self.assertEqual(sent[0], "mine")
        self.assertTrue(sent[1])
        found: List[Dict[str, Any]] = [dict(r) for r in results]
        self.assertEqual(lubdub.created(found[0])["taskId"], "a")
        self.assertRaises(errors.TaskExists, lambda: lubdub.created(found[1]))

    def test_creations_that_got_503_are_repeated_in_order(self) -> None:
        refusals: Dict[str, List[int]] = {"b": [503, 503], "d": [429], "e": [503] * 9, "f": [400]}
        requests: List[List[Any]] = []

        def answer(request: Any) -> Any:
            items = request.json()["tasks"]
            requests.append([(item["taskId"], item["idempotencyKey"]) for item in items])
            left = [refusals.get(item["taskId"]) for item in items]
            return 200, {
                "results": [
                    {"status": of.pop(0), "error": "x", "retryAfterMs": 2000}
                    if of
                    else {"status": 201, "taskId": item["taskId"]}
                    for of, item in zip(left, items)
                ]
            }

        with Server() as server:
            server.intercept = answer
            given: List[Any] = [{"taskId": name, "queue": "q"} for name in "abcdef"]
            given[1]["idempotencyKey"] = "mine"
            original = json.loads(json.dumps(given))
            began = server.clock.now()
            found = server.hand.run(lambda: server.client(tries=4).create_tasks({"tasks": given})["results"])
            self.assertGreaterEqual(server.clock.now() - began, 6)
        self.assertEqual(
            [(r.get("taskId"), r["status"]) for r in found],
            [("a", 201), ("b", 201), ("c", 201), ("d", 201), (None, 503), (None, 400)],
        )
        self.assertEqual(
            [[name for name, _ in round] for round in requests], [list("abcdef"), list("bde"), list("be"), list("e")]
        )
        keys = dict(requests[0])
        self.assertEqual(keys["b"], "mine")
        self.assertEqual(
            (len(set(keys.values())), all(keys[n] == key for round in requests for n, key in round)), (6, True)
        )
        self.assertEqual(given, original)

    def test_created_tasks_are_returned_if_the_rest_is_rejected(self) -> None:
        answers = iter(
            [
                (200, {"results": [{"status": 201, "taskId": "a"}, {"status": 503, "error": "x"}]}),
                (403, {"error": "forbidden"}),
            ]
        )
        with Server() as server:
            server.intercept = lambda r: next(answers)
            found = server.hand.run(
                lambda: server.client().create_tasks({"tasks": [{"queue": "q"}, {"queue": "q"}]})["results"]
            )
        self.assertEqual([r["status"] for r in found], [201, 503])

    def test_a_slow_response_is_aborted(self) -> None:
        web = self.web(lambda _: (200, b"{}", {"Content-Length": "1000"}))
        with lubdub.Client(web.url, timeout=0.2, tries=1) as client:
            with self.assertRaises(lubdub.NoAnswer) as caught:
                client.version()
        self.assertIn("no answer within", str(caught.exception))


class Tokens(TestCase):
    def test_a_rejected_token_is_read_again_once(self) -> None:
        web = self.web(
            lambda r: (200, {}, {})
            if r.headers.get("authorization") == "Bearer new"
            else (401, {"error": "unauthorized"}, {})
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            with open(path, "w", encoding="utf-8") as file:
                file.write(" old\n")
            os.environ["LUBDUB_TOKEN_FILE"] = path
            with lubdub.Client(web.url) as client:
                self.assertRaises(errors.Unauthorized, client.get_system)
                self.assertEqual(len(web.requests), 1)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("new")
                client.get_system()
                client.get_system()
        self.assertEqual(
            [r.headers["authorization"] for r in web.requests], ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]
        )

    def test_no_text_shows_the_token(self) -> None:
        web = self.web(lambda _: (401, {"error": "unauthorized", "message": "no"}, {}))
        client = lubdub.Client(web.url, token="top-secret", tries=1)
        with self.assertRaises(lubdub.ApiError) as caught:
            client.get_system()
        client.close()
        for text in (
            str(caught.exception),
            repr(caught.exception),
            repr(client),
            repr(client.caller.token),
            str(vars(client)),
        ):
            self.assertNotIn("top-secret", text)

    def test_the_environment(self) -> None:
        web = self.web(ok)
        os.environ.update(LUBDUB_URL=web.url, LUBDUB_TOKEN="env")
        with lubdub.Client() as client:
            client.list_tasks()
        self.assertEqual(web.requests[0].headers["authorization"], "Bearer env")


class BadUse(TestCase):
    def refused(self, words: str, *arguments: Any, **named: Any) -> None:
        with self.assertRaises(lubdub.ConfigurationError) as caught:
            lubdub.Client(*arguments, **named)
        self.assertIn(words, str(caught.exception))
        self.assertNotIn("hush", str(caught.exception))

    def test_invalid_settings_are_rejected_before_anything_is_sent(self) -> None:
        self.refused("set LUBDUB_URL")
        self.refused("not like https://host:port", "ftp://x")
        self.refused("not like https://host:port", "http://x:port")
        self.refused("contains credentials", "https://user:hush@x")
        self.refused("more than a path", "https://x/?a=b")
        self.refused("allow_http=True", "http://example.com", token="hush")
        self.refused("without quotes", "https://x", token="hush hush")
        self.refused("give one of", "https://x", token="a", token_file="b")
        self.refused("`lubdub token", "https://x", token="x.eyJrbmQiOiJ0YXNrIn0.x")
        self.refused('"patient" or "strict"', "https://x", lease="maybe")
        self.refused("a timeout of 0", "https://x", timeout=0)
        self.refused("1 is the least", "https://x", tries=0)
        self.refused("holds no valid PEM certificate", "https://x", ca_file=__file__)
        lubdub.Client("http://example.com", token="a", allow_http=True)
        lubdub.Client("http://example.com")
        lubdub.Client("http://[::1]:8080", token="a")

    def test_ids_and_bodies(self) -> None:
        client = lubdub.Client("http://127.0.0.1:1", token="a")
        self.assertRaises(lubdub.ConfigurationError, lambda: client.get_task(""))
        body: Any = {"queue": "q", "payload": object()}
        self.assertRaises(lubdub.ConfigurationError, lambda: client.create_task(body))
        self.assertRaises(lubdub.ConfigurationError, lambda: client.enqueue("", "t"))
        self.assertRaises(lubdub.ConfigurationError, lambda: client.dispatch({"queue": "t"}))
        client.close()
        self.assertRaises(lubdub.ClosedError, client.version)

    def test_a_callback_address_that_would_show_the_token(self) -> None:
        with Server() as server:
            envelope: Dict[str, Any] = {**server.dispatch(), "callbackBaseUrl": "http://example.com"}
            with self.assertRaises(lubdub.ConfigurationError) as caught:
                server.client().track(envelope).start()
        self.assertIn("callbackBaseUrl", str(caught.exception))


class OneEvent(Transport):
    """A stream with one event that calls a function when it has been read."""

    def __init__(self) -> None:
        self.closed = 0
        self.read: Callable[[], None] = lambda: None

    def stream(self, url: str, headers: Mapping[str, str], limit: float, cancel: Optional[Event] = None) -> Stream:
        lines = [b"", b"\n", b'data: {"id": 1}\n', b"id: c1\n"]

        def line(_: float) -> bytes:
            if len(lines) == 2:
                self.read()
            return lines.pop()

        def close() -> None:
            self.closed += 1

        return Stream(200, {}, line, close)


class Streams(TestCase):
    def test_a_closed_stream_leaves_no_connection(self) -> None:
        transport = OneEvent()
        with lubdub.Client("http://127.0.0.1", token="x", transport=transport) as client:
            with client.events() as stream:
                self.assertEqual(next(stream)["id"], 1)
            self.assertEqual(transport.closed, 1)
            self.assertEqual((list(stream), transport.closed), ([], 1))

    def test_a_stream_that_is_closed_while_it_is_read_leaves_no_connection(self) -> None:
        transport = OneEvent()
        with lubdub.Client("http://127.0.0.1", token="x", transport=transport) as client:
            stream = client.events()
            transport.read = stream.close
            self.assertEqual(next(stream)["id"], 1)
            self.assertEqual(transport.closed, 1)

    def test_a_stream_resumes_at_its_position(self) -> None:
        def event(number: int) -> str:
            return f'id: c{number}\ndata: {json.dumps({"id": number, "type": "task.created"})}\n\n'

        bodies = [
            ": lubdub\nretry: 1\nid: c0\n\n" + event(1) + event(2),  # and then the connection ends
            event(3) + 'event: end\nid: c3\nretry: 1\ndata: {"reason":"draining"}\n\n',
            'event: gap\nid: c7\ndata: {"from":"a","to":"b"}\n\n' + event(8),
        ]
        web = self.web(
            lambda _: (200, bodies.pop(0).encode(), {"Content-Type": "text/event-stream", "Connection": "close"})
        )
        with lubdub.Client(web.url, token="x") as client, client.events(type=["task.*"], after="c") as stream:
            self.assertEqual([next(stream)["id"] for _ in range(3)], [1, 2, 3])
            with self.assertRaises(lubdub.EventsMissing):
                next(stream)
            self.assertEqual(next(stream)["id"], 8)
            self.assertEqual(stream.cursor, "c8")
        self.assertEqual([r.headers.get("last-event-id") for r in web.requests], [None, "c2", "c3"])
        self.assertIn("after=c", web.requests[0].path)
        self.assertNotIn("after", web.requests[1].path)
        self.assertEqual(web.requests[0].headers["accept"], "text/event-stream")

    def test_an_error_ends_it(self) -> None:
        web = self.web(lambda _: (400, {"error": "invalid_cursor"}, {}))
        with lubdub.Client(web.url, token="x") as client:
            self.assertRaises(errors.InvalidCursor, lambda: next(client.events()))
