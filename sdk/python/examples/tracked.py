"""One task that is dispatched to a program: its envelope is read from standard input."""

import asyncio
import json
import sys

import lubdub


def rows() -> "list[int]":
    """The work."""
    return list(range(5))


def work(client: lubdub.Client, envelope: lubdub.types.TaskEnvelope) -> None:
    """As a context: it reports the start, sends heartbeats, and completes the task at the end."""
    with client.track(envelope) as task:
        for number, _ in enumerate(rows()):
            task.progress(100 * number / len(rows()), "loading")
            task.check()
        task.output = {"rows": len(rows())}


async def work_beside_others(client: lubdub.Client, envelope: lubdub.types.TaskEnvelope) -> None:
    """The same in a coroutine, which is cancelled when the work must end."""
    async with client.track(envelope) as task:
        await asyncio.sleep(0.01)
        task.output = {"rows": len(rows())}


if __name__ == "__main__":
    with lubdub.Client() as our_client:
        work(our_client, json.loads(sys.stdin.readline()))
        asyncio.run(work_beside_others(our_client, json.loads(sys.stdin.readline())))
