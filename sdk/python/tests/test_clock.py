"""The clock of the test server."""

import threading
from typing import List

from lubdub import _clock
from lubdub._clock import Event
from lubdub.testing import Server

from .helpers import TestCase


class Clock(TestCase):
    def test_a_wait_advances_it_however_short_the_wait_is(self) -> None:
        with Server() as server:
            clock = server.hand
            clock.advance(50_000.3)
            start = clock.now()
            ended: List[float] = []
            clock.call_later(1e-15, lambda: ended.append(clock.now()))
            clock.advance(1)
            self.assertGreater(ended[0], start)

    def test_cancelled_timers_are_removed(self) -> None:
        clock = _clock.Clock()
        last = clock.call_later(3600, lambda: None)  # the others are behind it
        self.addCleanup(last.cancel)
        for _ in range(4 * _clock.LEAST_TIMERS):
            clock.call_later(3601, lambda: None).cancel()
        timers = vars(_clock)["_the_scheduler"].timers
        self.assertLessEqual(len(timers), 2 * _clock.LEAST_TIMERS)
        self.assertTrue(any(timer is last for _, _, timer in list(timers)))

    def test_a_handler_may_run_a_worker(self) -> None:
        with Server() as server:
            clock = server.hand
            began, ended = clock.now(), threading.Event()

            def nested() -> None:
                with clock.outside():
                    with clock.inside(), clock.outside():
                        Event(clock).wait(1)
                    with clock.outside():
                        Event(clock).wait(1)
                    Event(clock).wait(1)
                ended.set()

            clock.spawn(nested, "handler")
            clock.until("it ends", ended.is_set)
            self.assertEqual(clock.now(), began + 3)
            clock.settle()
