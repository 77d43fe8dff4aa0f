"""Calls that the server may answer late."""

import unittest
from unittest import mock

import lubdub


class Waits(unittest.TestCase):
    def test_calls_allow_for_the_time_that_the_server_may_wait(self) -> None:
        client = lubdub.Client("http://127.0.0.1:9", token="secret")
        self.addCleanup(client.close)
        with mock.patch.object(lubdub.Client, "ask", return_value={}) as ask:
            client.get_task("t", wait_ms=60_000)
            client.wait_tasks({"taskIds": ["t"], "waitMs": 60_000})
            client.claim_tasks("q", {"waitMs": 60_000}, token="secret")
            self.assertEqual([call.kwargs["waits"] for call in ask.call_args_list], [60.0] * 3)
            client.get_task("t")
            self.assertEqual(ask.call_args.kwargs["waits"], 0)
