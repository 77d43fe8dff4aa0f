"""The end of the process. A thread that returns from a wait or a call during interpreter shutdown may crash it, and finds its modules gone.
So the SDK's threads end before: waiters are woken and leave by raising Exiting."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import os
import threading
import time
from typing import Callable, Dict, Generator, Optional, Set, Tuple

LAST = 2.0  # seconds; how long the process waits for all of these threads
LONGEST = 3600.0  # seconds per wait; the system's limit is lower than some waits


class Exiting(SystemExit):
    """Ends a thread of the SDK, since the process ends."""


class _State:
    """The state of this module."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ender: Optional[int] = None  # the thread that ends the process
        self.threads: Set[threading.Thread] = set()  # threads of the SDK
        self.outside: Set[threading.Thread] = set()  # threads of the SDK that run user code
        self.blocked: Dict[object, Tuple[threading.Thread, Callable[[], object]]] = {}


_state = _State()


def check() -> None:
    """Ends the calling thread if the process is ending."""
    if _state.ender is not None and _state.ender != threading.get_ident():
        # other threads get a plain SystemExit, which Python ignores
        raise Exiting if threading.current_thread() in _state.threads else SystemExit


def blocked(wake: Callable[[], object]) -> Callable[[], None]:
    """Call it before a blocking operation that wake, called by another thread, interrupts. Call what it returns afterwards."""
    state, key = _state, object()
    with state.lock:
        check()
        state.blocked[key] = (threading.current_thread(), wake)

    def over() -> None:
        with state.lock:
            state.blocked.pop(key, None)

    return over


class Condition(threading.Condition):
    """A condition whose waits end with the process."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        over = blocked(self.wake)
        try:
            woken = super().wait(timeout if timeout is None else min(timeout, LONGEST))
        finally:
            over()
        check()
        return woken

    def wake(self) -> None:
        """Wakes all waiters."""
        if self.acquire(timeout=LAST):
            try:
                self.notify_all()
            finally:
                self.release()


def start(target: Callable[[], None], name: str) -> threading.Thread:
    """Starts a thread that does not keep the process alive and ends before it. It does not get the context variables of its creator, as in
    free-threaded Python: one of them cancels calls."""

    def run() -> None:
        try:
            contextvars.Context().run(target)
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
    """Wraps user code, which the end of the process does not wait for."""
    state, thread = _state, threading.current_thread()
    if thread in state.outside:
        yield
        return
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
        with contextlib.suppress(RuntimeError, AssertionError):  # for threads that Python did not start
            thread.join(max(0.0, end - time.monotonic()))


def _after_fork() -> None:
    global _state
    _state = _State()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
