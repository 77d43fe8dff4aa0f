"""The clock of the SDK: the system's, or one that a test controls."""

from __future__ import annotations

import contextlib
import datetime
import heapq
import itertools
import logging
import os
import random
import sys
import threading
import time
from typing import Callable, ContextManager, Iterator, List, Optional, Tuple, Union

from . import _exit
from .errors import ConfigurationError

log = logging.getLogger("lubdub")

FIRST_PAUSE = 0.25  # seconds; the upper bound of the first pause of backoff
MAX_PAUSE = 5.0
MAX_DELAY = 366 * 86_400_000  # ms; the longest delay that a server accepts

LEAST_TIMERS = 1000

Delay = Union[datetime.timedelta, float]  # in seconds


class Timer:
    """A scheduled call."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Optional[Callable[[], None]] = call

    def cancel(self) -> None:
        """Cancels the call unless it is already running."""
        self.call = None


class Clock:
    """The system's clock. All times are in seconds."""

    def now(self) -> float:
        """A monotonic reading that includes the time while the host sleeps."""
        return _now()

    def awake(self) -> float:
        """A monotonic reading without the time while the host sleeps, where the system has one."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def condition(self) -> threading.Condition:
        """A condition whose waits follow this clock."""
        return _exit.Condition(threading.Lock())

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        """Calls back after a delay, in a shared thread: the call must be short."""
        return _scheduler().add(time.monotonic() + max(0.0, delay), Timer(call))

    def spawn(self, target: Callable[[], None], name: str) -> threading.Thread:
        """Starts a thread that does not keep the process alive and ends before it."""
        return _exit.start(target, name)

    def inside(self) -> ContextManager[None]:
        """Wraps the SDK's work in a thread that the user has started."""
        return contextlib.nullcontext()

    def outside(self) -> ContextManager[None]:
        """Wraps user code."""
        return _exit.outside()


class _Fallback:
    """For systems without CLOCK_BOOTTIME: adds up, step by step, the larger advance of the wall clock and the monotonic clock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wall, self.monotonic, self.at = time.time(), time.monotonic(), 0.0

    def now(self) -> float:
        with self.lock:
            wall, monotonic = time.time(), time.monotonic()
            self.at += max(monotonic - self.monotonic, wall - self.wall)
            self.wall, self.monotonic = wall, monotonic
            return self.at


if sys.platform == "linux":

    def _now() -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    _now = _Fallback().now


class _Scheduler:
    """Runs timers in one thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.cond = _exit.Condition()
        self.timers: List[Tuple[float, int, Timer]] = []
        self.most = LEAST_TIMERS  # timers before those that were cancelled are removed
        self.count: Iterator[int] = itertools.count()
        _exit.start(self.run, "lubdub-timers")

    def add(self, at: float, timer: Timer) -> Timer:
        with self.cond:
            if len(self.timers) >= self.most:
                self.timers = [one for one in self.timers if one[2].call is not None]
                heapq.heapify(self.timers)
                self.most = max(LEAST_TIMERS, 2 * len(self.timers))
            heapq.heappush(self.timers, (at, next(self.count), timer))
            if self.timers[0][2] is timer:
                self.cond.notify()
        return timer

    def run(self) -> None:
        while True:
            with self.cond:
                while not self.timers:
                    self.cond.wait()
                at, _, timer = self.timers[0]
                left = at - time.monotonic()
                if left > 0 and timer.call is not None:
                    self.cond.wait(min(left, 60))
                    continue
                heapq.heappop(self.timers)
            call = timer.call
            if call is not None:
                try:
                    call()
                except Exception:
                    log.exception("a timer callback failed")


_guard = threading.Lock()
_the_scheduler: Optional[_Scheduler] = None


def _scheduler() -> _Scheduler:
    global _the_scheduler
    with _guard:
        if _the_scheduler is None or _the_scheduler.pid != os.getpid():  # a forked process has only one thread
            _the_scheduler = _Scheduler()
        return _the_scheduler


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Event:
    """An event with waits by a clock, and with callbacks."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.cond = clock.condition()
        self.happened = False
        self.calls: List[Callable[[], None]] = []

    def set(self) -> None:
        """Sets the event, wakes all waiters and runs the callbacks, once."""
        with self.cond:
            if self.happened:
                return
            self.happened = True
            calls, self.calls = self.calls, []
            self.cond.notify_all()
        for call in calls:
            call()

    def is_set(self) -> bool:
        """Whether the event is set."""
        return self.happened

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits until the event is set, and returns whether it is."""
        end = None if seconds is None else self.clock.now() + seconds
        with self.cond:
            while not self.happened:
                left = None if end is None else end - self.clock.now()
                if left is not None and left <= 0:
                    break
                self.cond.wait(left)
            return self.happened

    def then(self, call: Callable[[], None]) -> Callable[[], None]:
        """Calls back when the event is set, or now if it already is. Returns a function that removes the callback."""
        with self.cond:
            if not self.happened:
                self.calls.append(call)
                return lambda: self.forget(call)
        call()
        return lambda: None

    def forget(self, call: Callable[[], None]) -> None:
        """Removes a callback."""
        with self.cond:
            if call in self.calls:
                self.calls.remove(call)


def backoff(tried: int, most: float) -> float:
    """The pause before retry number tried, counted from 0: uniform between 0 and a bound that doubles up to most, so that clients do not
    retry in step."""
    return random.uniform(0, min(most, FIRST_PAUSE * (1 << min(tried, 20))))


def milliseconds(delay: Delay) -> int:
    """A delay in whole milliseconds, as the API has it. One below zero, as until a time that has passed, is zero."""
    try:
        ms = round((delay.total_seconds() if isinstance(delay, datetime.timedelta) else delay) * 1000)
        if ms <= MAX_DELAY:
            return max(0, ms)
    except (OverflowError, TypeError, ValueError):
        pass
    raise ConfigurationError(f"{delay!r} is not a delay; give a timedelta, or seconds, at most 366 days")


def wait_any(seconds: float, *events: Optional[Event]) -> bool:
    """Waits until one of several events is set, and returns whether one is. None is ignored."""
    given = [event for event in events if event is not None]
    either = Event(given[0].clock)
    undo = [event.then(either.set) for event in given]
    try:
        return either.wait(seconds)
    finally:
        for forget in undo:
            forget()
