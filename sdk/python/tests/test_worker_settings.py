"""A worker's settings and its probe."""

import os
import urllib.error
import urllib.request
from typing import Any, Callable

import lubdub
from lubdub.testing import Server

from .helpers import TestCase
from .workers import WorkerCase


class Probes(TestCase):
    def test_the_probe_reports_whether_heartbeats_are_on_time(self) -> None:
        with Server() as server:
            worker = lubdub.Worker("default", client=server.client(), probe="127.0.0.1:0")
            worker.handle("t", lambda t: None)
            server.hand.spawn(lambda: worker.run(signals=False), "test-worker")
            server.until("it is registered", lambda: worker.registered)
            url = server.seen("/v1/workers")[0].json()["probeUrl"]
            server.advance(100)
            with urllib.request.urlopen(url) as answer:
                self.assertEqual((answer.status, answer.read()), (200, b"alive\n"))
            server.hand._now += 16  # pyright: ignore[reportPrivateUsage]  # and nothing has run
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(url)
            self.assertEqual(caught.exception.code, 503)
            caught.exception.close()
            server.jump(0)
            worker.kill()
            server.until("it has left", lambda: not worker.registered)


class BadUse(WorkerCase):
    def refused(self, words: str, act: Callable[[], Any]) -> None:
        with self.assertRaises(lubdub.ConfigurationError) as caught:
            act()
        self.assertIn(words, str(caught.exception))

    def test_invalid_settings_are_rejected_before_anything_is_sent(self) -> None:
        client = self.server.client()

        def make(**options: Any) -> lubdub.Worker:
            return lubdub.Worker(options.pop("queue", "default"), client=client, **options)

        self.refused("the one to claim from", lambda: make(queue=""))
        self.refused("1 is the least", lambda: make(concurrency=0))
        self.refused("is negative", lambda: make(watchdog=-1))
        self.refused("must not come before", lambda: make(soft_stop=30, hard_stop=20))
        self.refused("must not come before", lambda: make(soft_stop=26))
        os.environ["TERMINATION_GRACE_PERIOD_SECONDS"] = "25"
        self.refused("terminationGracePeriodSeconds", lambda: make(hard_stop=25))
        make(hard_stop=24)
        del os.environ["TERMINATION_GRACE_PERIOD_SECONDS"]
        self.refused("no handler", lambda: make().run())
        self.refused("has no type", lambda: make().handle("", lambda t: None))
        uncallable: Any = None
        self.refused("is not callable", lambda: make().handle("t", uncallable))
        worker = make(types=["t", "u"])
        worker.handle("t", lambda t: None)
        self.refused("two handlers for 't'", lambda: worker.handle("t", lambda t: None))
        self.refused("'u' would be claimed", worker.run)
        bad = make(probe="nonsense")
        bad.handle("t", lambda t: None)
        self.refused("give host:port", lambda: bad.run(signals=False))
        self.refused("use ca_file", lambda: lubdub.Client("http://127.0.0.1:1", transport=self.server, isolated=True))
        self.assertEqual(self.server.requests, [])
        os.environ.update(LUBDUB_URL="")
        self.refused("set LUBDUB_URL", lubdub.Worker)

    def test_the_stops_follow_the_orchestrators_grace(self) -> None:
        client = self.server.client()
        for grace, given, soft, hard in (
            ("", {}, 20, 25),
            ("30", {}, 20, 25),
            ("120", {}, 110, 115),
            ("6", {}, 4, 5),
            ("3", {}, 2, 2.5),
            ("0", {}, 0, 0),
            ("nonsense", {}, 20, 25),
            ("120", {"soft_stop": 1, "hard_stop": 2}, 1, 2),
            ("120", {"hard_stop": 10}, 8, 10),
            ("120", {"soft_stop": 90}, 90, 115),
        ):
            os.environ["TERMINATION_GRACE_PERIOD_SECONDS"] = grace
            options: Any = given
            worker = lubdub.Worker(client=client, **options)
            self.assertEqual((worker.soft_stop, worker.hard_stop), (soft, hard), grace)

    def test_it_runs_once(self) -> None:
        worker = self.start()
        self.server.until("it is registered", lambda: worker.registered)
        self.refused("before run", lambda: worker.handle("u", lambda t: None))
        self.stop(worker)
        self.refused("has already run", worker.run)

    def test_a_task_with_impossible_timeouts_is_not_started(self) -> None:
        task = self.server.enqueue("t", heartbeatIntervalMs=10_000, heartbeatTimeoutMs=15_000)
        with self.assertLogs("lubdub.worker", "INFO") as logs:
            self.start()
            self.server.advance(15)
        self.assertEqual(self.server.task(task).completions, [])
        self.assertIn("less than twice its interval", "\n".join(logs.output))
