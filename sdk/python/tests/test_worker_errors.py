"""A worker whose server or network fails."""

from typing import List

from lubdub.task import Task

from .workers import WorkerCase


class Trouble(WorkerCase):
    def test_deltas_are_resent_until_they_are_answered(self) -> None:
        self.start()
        self.server.until("it beats", lambda: self.server.store.workers and len(self.beats()) > 0)
        self.server.lose_answers("/v1/workers/*", "/v1/workers/*")
        for _ in range(3):
            self.done(self.server.enqueue("t"))
        self.server.until("they are counted", lambda: self.server.worker().completed == 3)
        unconfirmed = iter([(503, {"error": "overloaded"})] * 3)
        self.server.intercept = lambda r: next(unconfirmed, None) if r.path.endswith("/heartbeat") else None
        self.done(self.server.enqueue("t"))
        self.server.until("that one too", lambda: self.server.worker().completed == 4)
        self.server.advance(100)
        self.assertEqual(self.server.worker().completed, 4)

    def test_a_claim_is_repeated_under_its_id(self) -> None:
        task = self.server.enqueue("t", 7)
        self.server.lose_answers("*/claim", "*/claim")
        self.start()
        self.assertEqual(self.done(task).output, 7)
        self.assertEqual(len({r.json()["claimId"] for r in self.server.seen("*/claim")[:3]}), 1)
        self.assertEqual(len(self.server.task(task).completions), 1)

    def test_claims_from_an_empty_queue_have_pauses(self) -> None:
        self.server.intercept = lambda r: (200, {"tasks": []}) if r.path.endswith("/claim") else None
        self.start()
        self.server.advance(120)
        self.assertLess(len(self.server.seen("*/claim")), 120)

    def test_it_registers_again_and_continues_its_tasks(self) -> None:
        def handler(task: Task) -> str:
            task.wait(60)
            return task.envelope["taskToken"]

        held, lost = self.server.enqueue("t"), self.server.enqueue("t")
        self.start(handler)
        self.server.until("both run", lambda: {self.server.task(i).state for i in (held, lost)} == {"RUNNING"})
        first = self.server.worker().id
        self.server.forget()
        self.server.supersede(lost)
        self.server.until("it has come back", lambda: len(self.server.seen("/v1/workers")) == 2)
        self.done(held)
        self.assertEqual(self.server.task(held).worker, self.server.worker().id)
        self.assertNotEqual(self.server.worker().id, first)
        self.assertEqual(self.server.task(lost).completions, [])
        ids = [r.json()["registrationId"] for r in self.server.seen("/v1/workers")]
        self.assertNotEqual(ids[0], ids[1])

    def test_a_crash_loop_backs_off(self) -> None:
        self.server.intercept = lambda r: (410, {"error": "worker_offline"}) if r.path.endswith("/claim") else None
        self.start()
        self.server.advance(300)
        self.assertLess(len(self.server.seen("/v1/workers")), 60)

    def test_a_refused_registration_is_raised(self) -> None:
        self.server.intercept = lambda r: (403, {"error": "forbidden"})
        self.start()
        self.server.until("it ends", lambda: self.ended)
        self.assertEqual(str(getattr(self.ended[0], "code", "")), "forbidden")

    def test_registration_waits_for_the_server(self) -> None:
        self.server.down()
        worker = self.start()
        self.server.advance(100)
        self.server.up()
        self.server.until("it is registered", lambda: worker.registered)
        self.assertEqual(len({r.json()["registrationId"] for r in self.server.seen("/v1/workers")}), 1)

    def test_a_strict_lease_ends_the_handler_and_nothing_is_sent_of_it(self) -> None:
        ends: List[float] = []

        def handler(task: Task) -> None:
            task.on_end(lambda end: ends.append(self.server.clock.now()))
            task.wait(1000)

        task = self.server.enqueue("t")
        self.start(handler, client={"lease": "strict"})
        self.server.until("it beats", lambda: self.server.task(task).beats >= 2)
        accepted = max(r.at for r in self.beats() if r.status == 200)
        self.server.down()
        self.server.advance(100)
        self.assertEqual(len(ends), 1)
        self.assertAlmostEqual(ends[0], accepted + 30, places=2)
        self.server.up()
        self.server.advance(50)
        self.assertEqual(self.server.task(task).completions, [])
