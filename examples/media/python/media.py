"""Resizes clips with Lubdub. As a worker it runs the three steps of the pipeline; submit sends clips through it and awaits the results:

    media.py worker
    media.py submit http://127.0.0.1:8099 clip-1 clip-2

LUBDUB_URL and LUBDUB_TOKEN name the deployment. A worker's token needs the role enroll, that of submit needs submitter.
"""

import functools
import hashlib
import json
import logging
import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Dict, List, Tuple

import lubdub

QUEUE = "media"
log = logging.getLogger("media")

# The payload of all three tasks: the URLs of the clip's source (frames in PPM, one after the other), of the folder for its frames and of
# the target where the result is published; and frames, how many it has, once it is fetched.
Clip = Dict[str, Any]


def work() -> None:
    """Runs tasks until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    worker = lubdub.Worker(QUEUE, concurrency=8)
    worker.handle("fetch", fetch)
    worker.handle("resize", resize)
    worker.handle("publish", publish)
    worker.run()


def fetch(task: lubdub.Task) -> int:
    """Stores the frames of a clip in its folder and returns how many there are."""
    clip: Clip = task.payload
    rest, frames = request("GET", clip["source"]), 0
    while rest:
        width, height, start = header(rest)
        end = start + 3 * width * height
        request("PUT", frame_url(clip, "full", frames), rest[:end])
        rest = rest[end:]
        frames += 1
    return frames


def resize(task: lubdub.Task) -> int:
    """Halves each frame. A checkpoint after each one lets the next attempt continue with the next frame."""
    clip: Clip = task.payload
    first = task.last_checkpoint or 0
    if first:
        log.info("task %s of %s: resumed at frame %d", task.task_id, clip["source"], first)
    for number in range(first, clip["frames"]):
        task.check()  # raises the reason if the work must end
        small = halve(request("GET", frame_url(clip, "full", number)))
        request("PUT", frame_url(clip, "small", number), small)
        task.progress(100 * (number + 1) / clip["frames"], f"frame {number + 1} of {clip['frames']}")
        task.checkpoint(number + 1)
    return int(clip["frames"])


def publish(task: lubdub.Task) -> Dict[str, Any]:
    """Sends the resized clip to its target. All attempts of a task use the same key, so that the target publishes the clip once."""
    clip: Clip = task.payload
    small = b"".join(request("GET", frame_url(clip, "small", number)) for number in range(clip["frames"]))
    request("PUT", clip["target"], small, task.task_id)
    return {"frames": clip["frames"], "sha256": hashlib.sha256(small).hexdigest()}


def frame_url(clip: Clip, size: str, number: int) -> str:
    return f"{clip['folder']}/{size}/{number:04d}.ppm"


def header(ppm: bytes) -> Tuple[int, int, int]:
    """Reads the header of a PPM frame: width, height, and where the pixels start."""
    found = re.match(rb"P6\n(\d+) (\d+)\n255\n", ppm)
    if found is None or len(ppm) < found.end() + 3 * int(found[1]) * int(found[2]):
        raise lubdub.Permanent("not a PPM frame")
    return int(found[1]), int(found[2]), found.end()


def halve(ppm: bytes) -> bytes:
    """Averages each square of four pixels."""
    width, height, start = header(ppm)
    row = 3 * width
    small = bytearray(b"P6\n%d %d\n255\n" % (width // 2, height // 2))
    for y in range(0, height - 1, 2):
        for x in range(0, width - 1, 2):
            pixel = start + y * row + 3 * x
            for at in range(pixel, pixel + 3):  # red, green and blue
                small.append((ppm[at] + ppm[at + 3] + ppm[at + row] + ppm[at + row + 3] + 2) // 4)
    return bytes(small)


def request(method: str, url: str, body: bytes = b"", key: str = "") -> bytes:
    """Makes an HTTP request and returns the body of the answer. Its errors state whether and when another attempt can help."""
    headers = {"Idempotency-Key": key} if key else {}
    sent = urllib.request.Request(url, body or None, headers, method=method)
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        if error.code == 503:
            raise lubdub.RetryAfter(int(error.headers.get("Retry-After", 1)), f"{method} {url}: {error}") from None
        if error.code == 404:
            raise lubdub.Permanent(f"{method} {url}: {error}") from None
        raise  # it is retried by the policy of the task


def submit(studio: str, names: List[str]) -> int:
    """Sends clips through the pipeline, all at once, and prints the results as one line of JSON. Returns the exit code."""
    with lubdub.Client() as client, ThreadPoolExecutor(len(names)) as threads:
        results = dict(zip(names, threads.map(functools.partial(process, client, studio), names)))
    print(json.dumps(results), flush=True)
    return 1 if any("error" in result for result in results.values()) else 0


def process(client: lubdub.Client, studio: str, name: str) -> Dict[str, Any]:
    """Runs the steps of one clip, each when the one before has succeeded."""
    clip: Clip = {
        "source": f"{studio}/clips/{name}",
        "folder": f"{studio}/files/{name}",
        "target": f"{studio}/published/{name}",
    }

    def run(type: str, delay: timedelta = timedelta(0)) -> Any:
        task = client.enqueue(QUEUE, type, clip, delay=delay)
        return client.result(task["taskId"])

    try:
        clip["frames"] = run("fetch")
        run("resize")
        return dict(run("publish", delay=timedelta(seconds=1)))
    except lubdub.LubdubError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        work()
    elif len(sys.argv) > 3 and sys.argv[1] == "submit":
        sys.exit(submit(sys.argv[2], sys.argv[3:]))
    else:
        sys.exit("usage: media.py worker | media.py submit STUDIO CLIP [CLIP ...]")
