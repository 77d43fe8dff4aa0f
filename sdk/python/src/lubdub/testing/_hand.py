"""A clock that a test controls. Time moves only when the test moves it, and only while all threads of the SDK wait."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import threading
import time
from concurrent.futures import Future
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple

from .. import _exit
from .._clock import Clock, Timer

PATIENCE = 30.0  # real seconds after which a thread that still runs fails the test
GRACE = 2.0  # real seconds that the clock waits for a handler that works
RESULT: Any = vars(Future)["result"].__code__
QUIET = 20  # looks, 2 ms apart, without any activity, after which other handlers are taken to wait


def _rounded(seconds: float) -> float:
    return max(0.0, math.ceil(seconds * 1e6) / 1e6)


class _Waiter:
    def __init__(self, on: "_Condition", at: Optional[float], counted: bool, outside: bool) -> None:
        self.on, self.at, self.counted, self.outside, self.woken = on, at, counted, outside, False


class _Condition(_exit.Condition):
    """A condition whose waits follow the test's clock."""

    def __init__(self, hand: "HandClock") -> None:
        super().__init__(threading.Lock())
        self.hand = hand

    def wait(self, timeout: Optional[float] = None) -> bool:
        waiter = self.hand.enter(self, timeout)
        try:
            super().wait()
        finally:
            self.hand.leave(waiter)
        return waiter.at is None or self.hand.now() < waiter.at

    def notify(self, n: int = 1) -> None:
        self.hand.wake(self)
        super().notify(1 << 30)


class HandClock(Clock):
    """Starts at the beginning of 2026.

    Waits are rounded up to whole microseconds; the clock would not advance by a wait that is smaller than the precision of its time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rest = threading.Condition(self._lock)
        self._now, self._start = 1000.0, 1_767_225_600.0 - 1000.0
        self._slept = 0.0
        self._busy = self._activity = 0
        self._handlers: Dict[int, float] = {}  # threads that run user code, with the real time since when
        self._waiters: List[_Waiter] = []
        self._timers: List[Tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._mine = threading.local()

    # The methods of Clock.

    def now(self) -> float:
        return self._now

    def awake(self) -> float:
        return self._now - self._slept

    def wall(self) -> float:
        return self._start + self._now

    def condition(self) -> threading.Condition:
        return _Condition(self)

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        timer = Timer(call)
        with self._lock:
            self._timers.append((self._now + _rounded(delay), next(self._count), timer))
        return timer

    def spawn(self, target: Callable[[], None], name: str) -> threading.Thread:
        def run() -> None:
            self._mine.counted = True
            try:
                target()
            finally:
                self._add(-1)

        self._add(1)
        return _exit.start(run, name)

    @contextlib.contextmanager
    def inside(self) -> Generator[None, None, None]:
        mine = self._mine
        if getattr(mine, "counted", False):
            yield
            return
        outside = getattr(mine, "outside", False)
        mine.counted, mine.outside = True, False
        self._add(1)
        try:
            yield
        finally:
            mine.counted, mine.outside = False, outside
            self._add(-1)

    @contextlib.contextmanager
    def outside(self) -> Generator[None, None, None]:
        thread, mine = threading.get_ident(), self._mine
        counted, outside = getattr(mine, "counted", False), getattr(mine, "outside", False)
        since = self._handlers.get(thread)  # a handler may run a worker, which has hooks
        mine.counted, mine.outside = False, True
        self._begins()
        if counted:
            self._add(-1)
        try:
            with _exit.outside():
                yield
        finally:
            if counted:
                self._add(1)
            with self._lock:
                del self._handlers[thread]
                if since is not None:
                    self._handlers[thread] = since
            mine.counted, mine.outside = counted, outside

    def _begins(self) -> None:
        """A handler begins, or continues after a wait."""
        with self._lock:
            self._handlers[threading.get_ident()] = time.monotonic()

    # For conditions.

    def enter(self, on: _Condition, timeout: Optional[float]) -> _Waiter:
        """A thread starts to wait."""
        with self._lock:
            at = None if timeout is None else self._now + _rounded(timeout)
            waiter = _Waiter(on, at, getattr(self._mine, "counted", False), getattr(self._mine, "outside", False))
            self._waiters.append(waiter)
            if waiter.outside:
                del self._handlers[threading.get_ident()]
        if waiter.counted:
            self._add(-1)
        return waiter

    def leave(self, waiter: _Waiter) -> None:
        """A thread stops waiting."""
        if waiter.outside:
            self._begins()
        with self._lock:
            self._waiters.remove(waiter)
            self._activity += 1
        if waiter.counted and not waiter.woken:
            self._add(1)
        elif waiter.outside and waiter.woken:
            self._add(-1)

    def wake(self, on: _Condition) -> None:
        """Waiting threads are about to continue."""
        with self._lock:
            woken = [w for w in self._waiters if w.on is on and not w.woken]
            for waiter in woken:
                waiter.woken = True
        self._add(sum(w.counted or w.outside for w in woken))  # handlers until they run

    def _add(self, busy: int) -> None:
        with self._lock:
            self._busy += busy
            self._activity += 1
            self._rest.notify_all()

    # For tests.

    def settle(self) -> None:
        """Waits until all threads of the SDK wait. Handlers that work get GRACE seconds. Others get a moment, since what they wait for is
        unknown."""
        with self._lock:
            if not self._rest.wait_for(lambda: self._busy <= 0, PATIENCE):
                raise AssertionError("a thread of the SDK is still running")
        quiet, seen = 0, -1
        while self._handlers and quiet < QUIET:
            time.sleep(0.002)
            with self._lock:
                self._rest.wait_for(lambda: self._busy <= 0, PATIENCE)
                idle, seen = self._activity == seen and not self._working(), self._activity
            quiet = quiet + 1 if idle else 0

    def _working(self) -> bool:
        """Whether a handler works, or a coroutine for it. One that waits for another thread, by threading, does not."""
        frames, recent = sys._current_frames(), time.monotonic() - GRACE  # pyright: ignore[reportPrivateUsage]
        for thread, since in self._handlers.items():
            frame = frames.get(thread)
            if frame is None or since < recent:
                continue
            waits = frame.f_code.co_filename == threading.__file__
            caller = frame.f_back
            if not waits or (caller is not None and caller.f_code is RESULT):
                return True
        return False

    def advance(self, seconds: float) -> None:
        """Advances the clock, and wakes waiters in the order of their times."""
        end = self._now + seconds
        while True:
            self.settle()
            at = self.next()
            if at is None or at > end:
                break
            self._move(at)
        self._move(end)
        self.settle()

    def jump(self, seconds: float) -> None:
        """Advances the clock as if the host had slept: no waiter is woken on the way."""
        self.settle()
        self._slept += seconds
        self._move(self._now + seconds)
        self.settle()

    def stall(self, seconds: float) -> None:
        """Advances the clock as if no thread of the SDK could run meanwhile."""
        self.settle()
        self._move(self._now + seconds)
        self.settle()

    def next(self) -> Optional[float]:
        """When the next wait ends; None: never."""
        with self._lock:
            self._timers = [t for t in self._timers if t[2].call is not None]
            times = [w.at for w in self._waiters if w.at is not None and not w.woken] + [t[0] for t in self._timers]
        return min(times) if times else None

    def until(self, what: str, holds: Callable[[], Any], most: float = 3600) -> None:
        """Advances the clock, from one waiter to the next, until a condition holds. Fails if it does not hold within most seconds, or if
        nothing waits for the clock and it does not hold within 30 real seconds."""
        end = self._now + most
        stalled = time.monotonic() + PATIENCE
        while True:
            self.settle()
            if holds():
                return
            at = self.next()
            if at is not None and at > end:
                raise AssertionError(f"not within {most:g} s of the test's clock: {what}")
            if at is not None:
                self._move(at)
                stalled = time.monotonic() + PATIENCE
            elif time.monotonic() > stalled:
                raise AssertionError(
                    f"nothing waits for the test's clock, and not within {PATIENCE:g} real seconds: {what}"
                )
            else:
                time.sleep(0.005)  # threads that the test started, such as one that is about to run a worker

    def run(self, call: Callable[[], Any]) -> Any:
        """Makes a call in a thread, and advances the clock until it returns; returns or raises what the call does."""
        found: List[Any] = []
        failed: List[BaseException] = []

        def work() -> None:
            try:
                found.append(call())
            except BaseException as error:
                failed.append(error)

        self.spawn(work, "lubdub-test")
        self.until("the call returns", lambda: found or failed)
        if failed:
            raise failed[0]
        return found[0]

    def _move(self, to: float) -> None:
        with self._lock:
            self._now = max(self._now, to)
            due = sorted(t for t in self._timers if t[0] <= self._now)
            self._timers = [t for t in self._timers if t[0] > self._now]
            conditions = {id(w.on): w.on for w in self._waiters if w.at is not None and w.at <= self._now}
        for condition in conditions.values():
            with condition:
                condition.notify_all()
        for _, _, timer in due:
            call = timer.call
            if call is not None:
                call()
