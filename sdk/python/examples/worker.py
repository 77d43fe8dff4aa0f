"""A worker that sends mail. LUBDUB_URL and LUBDUB_TOKEN (with the role enroll) name the deployment:

    LUBDUB_URL=http://127.0.0.1:8080 LUBDUB_TOKEN=$(lubdub token --role enroll) python3 worker.py
"""

import logging
from typing import Any, Dict

import lubdub

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
worker = lubdub.Worker("default", concurrency=10, task_timeout=60)


@worker.handler("send_email")
def send_email(task: lubdub.Task) -> Dict[str, Any]:
    """The return value is the task's output; an exception is its failure."""
    address = task.payload.get("to")
    if not address:
        raise lubdub.Failure("the payload has no address", "DATA_QUALITY", retryable=False)
    for percent in (25, 50, 75):
        task.progress(percent, f"writing to {address}")
        task.wait(0.01)  # sleeps, and raises lubdub.Cancelled or another End when the work must end
    return {"sent": address}


@worker.handler("count")
async def count(task: lubdub.Task) -> int:
    """Coroutines run on one event loop, and are cancelled when their work must end."""
    return int(task.payload) + 1


if __name__ == "__main__":
    worker.run()
