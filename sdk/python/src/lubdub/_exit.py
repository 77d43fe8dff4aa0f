"""The end of the process. A thread that comes back from a wait or a call while the interpreter is taken down may crash it, and has no
modules left to work with. So those of the SDK are ended before that: whoever waits is woken, and leaves by Exiting."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from typing import Callable, Dict, Generator, Optional, Set, Tuple

LAST = 2.0  # seconds for which the process waits for them, all together
LONGEST = 3600.0  # seconds of one wait: the system's own bound is less than what an answer may ask for


class Exiting(SystemExit):
    """Ends a thread of the SDK, since the process ends."""


class _State:
    """All there is to know."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ender: Optional[int] = None  # the thread that ends the process
        self.threads: Set[threading.Thread] = set()  # of the SDK
        self.outside: Set[threading.Thread] = set()  # those of them that are in the user's code
        self.blocked: Dict[object, Tuple[threading.Thread, Callable[[], object]]] = {}


_state = _State()


def check() -> None:
    """Ends the thread, if the process ends."""
    if _state.ender is not None and _state.ender != threading.get_ident():
        raise Exiting if threading.current_thread() in _state.threads else SystemExit  # of others only that one is told to nobody


def blocked(wake: Callable[[], object]) -> Callable[[], None]:
    """Is called before something that may take long and that wake, called by another thread, ends. What is returned is called after."""
    state, key = _state, object()
    with state.lock:
        check()
        state.blocked[key] = (threading.current_thread(), wake)

    def over() -> None:
        with state.lock:
            state.blocked.pop(key, None)

    return over


class Condition(threading.Condition):
    """One whose waits end when the process does."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        over = blocked(self.wake)
        try:
            woken = super().wait(timeout if timeout is None else min(timeout, LONGEST))
        finally:
            over()
        check()
        return woken

    def wake(self) -> None:
        """Wakes all who wait."""
        if self.acquire(timeout=LAST):
            try:
                self.notify_all()
            finally:
                self.release()


def start(target: Callable[[], None], name: str) -> threading.Thread:
    """Starts a thread that does not keep the process alive, and that ends before it."""

    def run() -> None:
        try:
            target()
        except Exiting:
            pass
        finally:
            with state.lock:
                state.threads.discard(thread)

    state = _state
    check()
    thread = threading.Thread(target=run, name=name, daemon=True)
    with state.lock:
        state.threads.add(thread)
    try:
        thread.start()
    except BaseException:
        with state.lock:
            state.threads.discard(thread)
        raise
    return thread


@contextlib.contextmanager
def outside() -> Generator[None, None, None]:
    """Is around code that is the user's, for which the end of the process does not wait."""
    state, thread = _state, threading.current_thread()
    with state.lock:
        state.outside.add(thread)
    try:
        yield
    finally:
        with state.lock:
            state.outside.discard(thread)


def _end() -> None:
    state = _state
    with state.lock:
        state.ender = threading.get_ident()
        waiting = list(state.blocked.values())
        threads = (state.threads - state.outside) | {thread for thread, _ in waiting}
    for _, wake in waiting:
        with contextlib.suppress(Exception):
            wake()
    end = time.monotonic() + LAST
    for thread in threads - {threading.current_thread()}:
        with contextlib.suppress(RuntimeError, AssertionError):  # of threads that Python has not started
            thread.join(max(0.0, end - time.monotonic()))


def _after_fork() -> None:
    global _state
    _state = _State()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
