"""Resets locks and connections in a forked process: another thread may have held the lock, and both processes would use the connection."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """An object with state to reset after a fork."""

    def after_fork(self) -> None:
        """Runs in the child process, which has one thread."""


_all: "weakref.WeakSet[Forkable]" = weakref.WeakSet()


def register(of: Forkable) -> None:
    """Registers an object for after_fork."""
    _all.add(of)


def _after_fork() -> None:
    for one in list(_all):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
