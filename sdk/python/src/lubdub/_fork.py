"""What must be made anew in a fork of the process: locks that another thread held, and sockets that both would use."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Is told in the fork."""

    def after_fork(self) -> None:
        """Is called in the child, which has one thread."""


_all: "weakref.WeakSet[Forkable]" = weakref.WeakSet()


def tell(of: Forkable) -> None:
    """Has of.after_fork called in forks."""
    _all.add(of)


def _after_fork() -> None:
    for one in list(_all):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
