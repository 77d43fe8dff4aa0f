"""SIGTERM and SIGINT for all workers that run in the main thread."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import threading
from typing import Callable, Dict, Generator

from . import _fork
from ._runner import Runner

STOPS = (signal.SIGTERM, signal.SIGINT)
HANDLED = 128  # is added to the number of a signal by its handler
END = b"\xff"


class Signals:
    """Stops the workers of the process at a signal, and kills them at a second one. The first worker installs the handlers, and the last
    one removes them, in the main thread.

    A handler passes its signal to a thread, since the main thread may hold the locks that a stop takes. The system may deliver a signal to
    another thread; then the main thread calls the handler only once it wakes up. So each signal is also written to a descriptor at once,
    and the thread wakes the main thread up."""

    def __init__(self) -> None:
        self.runners: Dict[Runner, Callable[[], object]] = {}  # with what wakes the main thread, which waits for them
        _fork.register(self)

    @contextlib.contextmanager
    def stopping(self, runner: Runner, wake: Callable[[], object]) -> Generator[None, None, None]:
        """Stops a worker at signals that arrive during the block."""
        if not self.runners:
            self._install()
        if os.name == "posix":
            runner.signals = self.reader.fileno()
        self.runners[runner] = wake
        try:
            yield
        finally:
            self.runners.pop(runner, None)
            if not self.runners:
                self._remove()

    def _install(self) -> None:
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.count = 0
        self.before = {number: signal.signal(number, self._handle) for number in STOPS}
        self.wakeup = signal.set_wakeup_fd(self.writer.fileno(), warn_on_full_buffer=False)
        self.thread = threading.Thread(target=self._listen, name="lubdub-signals", daemon=True)
        self.thread.start()

    def _remove(self) -> None:
        self._restore()
        found = signal.set_wakeup_fd(-1)
        wanted = self.wakeup if found == self.writer.fileno() else found  # an event loop may have set its own meanwhile
        with contextlib.suppress(OSError, ValueError):  # that event loop was closed
            signal.set_wakeup_fd(wanted)
        with contextlib.suppress(OSError):  # full: the thread reads the end of the stream
            self.writer.send(END)
        self.writer.close()
        self.thread.join(5)
        self.reader.close()

    def _restore(self) -> None:
        """Restores the handlers that have not been replaced meanwhile."""
        for number, before in self.before.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, before or signal.SIG_DFL)

    def _handle(self, number: int, _: object) -> None:
        if all(runner.starting for runner in list(self.runners)):  # a function of the start cannot be stopped
            self._restore()
            signal.raise_signal(number)
            return
        self.count += 1
        if self.count > 1:  # a third signal ends the process, whatever its hooks do
            self._restore()
        with contextlib.suppress(OSError):
            self.writer.send(bytes([number + HANDLED]))

    def after_fork(self) -> None:
        """A signal to a forked process must not stop its parent."""
        if self.runners:
            self.runners = {}
            self._restore()
            signal.set_wakeup_fd(-1)

    def _listen(self) -> None:
        stopped = False
        while True:
            # reads only while this thread runs: a child process watches for unread signals
            wait_to_read(self.reader)
            number = (self.reader.recv(1) or END)[0]
            runners = list(self.runners.items())
            if number == END[0]:
                return
            if number < HANDLED:
                if self.wakeup >= 0 and os.name == "posix":  # an event loop waits for its signals
                    with contextlib.suppress(OSError):
                        os.write(self.wakeup, bytes([number]))
                for _, wake in runners:
                    wake()
                continue
            name = signal.Signals(number - HANDLED).name
            for log in {runner.logger for runner, _ in runners}:
                log.info("Received %s signal", name)
            for runner, _ in runners:
                runner.kill() if stopped else runner.stop()
            stopped = True


def wait_to_read(of: socket.socket) -> None:
    """Waits until there is something to read."""
    with selectors.DefaultSelector() as selector:
        selector.register(of, selectors.EVENT_READ)
        selector.select()


SIGNALS = Signals()
