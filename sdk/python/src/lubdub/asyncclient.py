"""The client for asyncio."""

from __future__ import annotations

import asyncio
import functools
import itertools
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
    Union,
    cast,
)

from . import types as t
from ._calls import AsyncCalls
from ._creations import MAX_TASKS, Enqueued, NewTask
from ._events import EventStream
from ._pool import Pool
from ._results import Timeout
from .task import Lease
from .client import Client
from .track import Tracking

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec  # pyright: ignore[reportMissingModuleSource]

    P = ParamSpec("P")


def with_arguments_of(
    of: "Callable[Concatenate[Any, P], Any]",
) -> "Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]":
    """Gives a method the parameters of another one."""
    return functools.partial(functools.update_wrapper, wrapped=of, assigned=("__doc__",), updated=())


def coroutine_of(
    method: "Callable[Concatenate[Client, P], T]",
) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    """A client's method as a coroutine, with the same parameters."""

    @functools.wraps(method)
    async def make(self: "AsyncClient", *args: Any, **options: Any) -> Any:
        return await self.call(functools.partial(method, self.client, *args, **options))

    return cast(Any, make)


class AsyncClient(AsyncCalls):
    """A Client for one event loop: the same calls as coroutines, in threads, at most 32 at a time. Any number of coroutines may wait for
    results, without threads. A cancelled call returns at once and ends its request, which the server may have received. It must be closed.
    """

    @with_arguments_of(Client.__init__)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._use(Client(*args, **options))

    @classmethod
    def of(cls, client: Client) -> "AsyncClient":
        """The calls of an existing client, which close closes too."""
        self = cls.__new__(cls)
        self._use(client)
        return self

    def _use(self, client: Client) -> None:
        self._client = client

    @property
    def client(self) -> Client:
        """The client that makes the calls."""
        return self._client

    def __repr__(self) -> str:
        return repr(self.client).replace("Client", "AsyncClient", 1)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Client.close: attempts that are still tracked get no more heartbeats, and calls that wait fail."""
        # not in the client's threads: they may all wait for what this ends
        await asyncio.shield(Pool(self.client.caller.clock, 1, rest=0).begin(self.client.close))

    async def call(self, make: Callable[[], T]) -> T:
        """Makes a blocking call in a thread of the client."""
        return await self.client.pool.begin(make)

    enqueue = coroutine_of(Client.enqueue)
    dispatch = coroutine_of(Client.dispatch)

    async def enqueue_many(self, tasks: Union[Iterable[NewTask], AsyncIterable[NewTask]]) -> AsyncIterator[Enqueued]:
        """Client.enqueue_many, as an asynchronous generator. The tasks may come from an asynchronous iterable; another one is read in a
        thread."""
        client, closing = self.client, self.client.caller.closing
        if isinstance(tasks, AsyncIterable):
            some: "list[NewTask]" = []
            async for task in tasks:
                some.append(task)
                if len(some) == MAX_TASKS:
                    for one in await self.call(lambda: list(client.enqueue_many(some))):
                        yield one
                    if closing.is_set():
                        return
                    some = []
            for one in await self.call(lambda: list(client.enqueue_many(some))):
                yield one
            return
        left = iter(tasks)
        while not closing.is_set():
            found = await self.call(lambda: list(client.enqueue_many(itertools.islice(left, MAX_TASKS))))
            for one in found:
                yield one
            if len(found) < MAX_TASKS:
                return

    async def result(self, task_id: str, timeout: Timeout = None) -> Any:
        """Waits until a task has ended, and returns its output, as Client.result does. All that a client waits for shares one request and
        one thread."""
        return await self.client.results.result_async(task_id, timeout)

    @with_arguments_of(Client.events)
    def events(self, **options: Any) -> "AsyncEventStream":
        """A stream of events from now, or after a cursor or a time, exclusive: iterate over it with async for, in an async with block."""
        return AsyncEventStream(self.client.events(**options))

    def track(self, envelope: Mapping[str, Any], *, lease: Optional[Lease] = None) -> Tracking:
        """An attempt as a context for async with: see Client.track."""
        return self.client.track(envelope, lease=lease)


class AsyncEventStream(AsyncIterator[t.Event]):
    """An event stream for one coroutine, read in a thread; see EventStream. A read that is cancelled, as by asyncio.wait_for, loses no
    event: the next one returns it. It must be closed, as an async with block does; otherwise it continues until the client is closed.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._pool = Pool(stream.clock, 1)
        self._reading: Optional["asyncio.Future[Optional[Tuple[t.Event, str]]]"] = None
        # The position after the last event that was returned: see EventStream.cursor.
        self.cursor = ""

    def __aiter__(self) -> "AsyncEventStream":
        return self

    async def __aenter__(self) -> "AsyncEventStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream; it does not block."""
        self._stream.close()
        self._pool.end()

    async def __anext__(self) -> t.Event:
        if self._reading is None:
            self._reading = self._pool.begin(functools.partial(_next, self._stream))
        try:
            found = await asyncio.shield(self._reading)
        except asyncio.CancelledError:
            raise  # the next call gets the event
        except BaseException:
            self._reading = None
            raise
        self._reading = None
        if found is None:
            raise StopAsyncIteration
        event, self.cursor = found
        return event


def _next(stream: EventStream) -> Optional[Tuple[t.Event, str]]:
    """The next event and the position after it; None: the stream has ended."""
    for event in stream:
        return event, stream.cursor
    return None


__all__ = ["AsyncClient", "AsyncEventStream"]
