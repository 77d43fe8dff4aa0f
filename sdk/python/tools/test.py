"""Runs the tests on every interpreter found of 3.9 to 3.13, and pyright; reports at the end what ran on which."""

import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import time
from typing import Dict, List, Tuple

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SYSTEM = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13"]


def interpreters() -> Dict[str, str]:
    """The interpreters on PATH, in /usr/bin and of pyenv, by version."""
    names = [shutil.which(f"python{v}") or "" for v in VERSIONS] + [
        shutil.which("python3") or "",
        "/usr/bin/python3",
        sys.executable,
    ]
    names += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))
    found: Dict[str, str] = {}
    for name in names:
        if name and os.path.exists(name):
            version = subprocess.run(
                [name, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
            )
            if version.stdout.strip() in VERSIONS:
                found.setdefault(version.stdout.strip(), name)
    return found


def run(what: str, command: List[str]) -> Tuple[str, int, float, str]:
    """Runs a command in the directory of the SDK."""
    began = time.monotonic()
    path = os.path.join(HERE, "src")
    done = subprocess.run(
        command,
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return what, done.returncode, time.monotonic() - began, done.stdout


def main() -> int:
    found = interpreters()
    if not found:
        print("no interpreter of " + ", ".join(VERSIONS) + " was found")
        return 1
    unittest = ["-X", "dev", "-m", "unittest", "-b", *sys.argv[1:]]
    jobs: List[Tuple[str, List[str]]] = [(f"Python {v}", [path, *unittest]) for v, path in sorted(found.items())]
    node = os.path.join(HERE, "node_modules", "pyright", "index.js")
    if not sys.argv[1:]:
        jobs[:0] = [
            ("pyright", ["node", node, "-p", ".", "--pythonpath", SYSTEM]),  # which has prometheus_client
            ("Prometheus", [SYSTEM, *unittest, "tests.prometheus"]),
            ("packages", [sys.executable, "-m", "unittest", "-b", "tests.package"]),
        ]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for what, status, took, output in pool.map(run, [name for name, _ in jobs], [command for _, command in jobs]):
            ran = re.search(r"Ran (\d+) tests|\d+ errors?.*", output)
            print(
                f"{what}: {'ok' if status == 0 else 'FAILED'}, {ran[0] if ran else 'nothing ran'}, {took:.0f} s",
                flush=True,
            )
            if status != 0 or not ran or ran[1] == "0":
                failed = 1
                print(output)
    return failed


if __name__ == "__main__":
    sys.exit(main())
