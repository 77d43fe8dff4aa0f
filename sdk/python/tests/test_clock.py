"""The clock of the test server."""

from typing import List

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
