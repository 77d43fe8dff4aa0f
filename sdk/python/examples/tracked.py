"""One task that is pushed to a program: its envelope comes on standard input."""

import asyncio
import json
import sys

import lubdub


def rows() -> "list[int]":
    """What is to be done."""
    return list(range(5))


def work(client: lubdub.Client, envelope: lubdub.types.TaskEnvelope) -> None:
    """As a context: it has started, beats go out, and at the end it is completed."""
    with client.track(envelope) as task:
        for number, _ in enumerate(rows()):
            task.progress(100 * number / len(rows()), "loading")
            task.check()
        task.output = {"rows": len(rows())}


async def work_beside_others(client: lubdub.Client, envelope: lubdub.types.TaskEnvelope) -> None:
    """The same in a coroutine, which is cancelled when the work is to end."""
    async with client.track(envelope) as task:
        await asyncio.sleep(0.01)
        task.output = {"rows": len(rows())}


if __name__ == "__main__":
    with lubdub.Client() as our_client:
        work(our_client, json.loads(sys.stdin.readline()))
        asyncio.run(work_beside_others(our_client, json.loads(sys.stdin.readline())))
