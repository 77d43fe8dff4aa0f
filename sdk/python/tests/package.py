"""Builds wheel and sdist with Debian's python3-build, installs them into an empty environment and runs them. It is not part of each
interpreter's tests: tools/test.py runs it once."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from typing import List

from .helpers import HERE, REPOSITORY

SDK = os.path.dirname(HERE)
SYSTEM = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PROGRAM = """
import importlib.metadata, os, lubdub, lubdub.testing
assert os.path.exists(os.path.join(os.path.dirname(lubdub.__file__), "py.typed"))
assert importlib.metadata.version("lubdub") == lubdub.__version__
with lubdub.testing.Server() as server:
    client = server.client()
    with client.track(server.dispatch()) as task:
        task.output = "it works"
    print(lubdub.__version__, server.task(task.task_id).output)
"""


def run(*command: str, cwd: str) -> str:
    """Runs a command without the checkout on its path."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


class Package(unittest.TestCase):
    def test_wheel_and_sdist(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = shutil.copytree(
                SDK, os.path.join(folder, "sdk"), ignore=shutil.ignore_patterns("node_modules", "__pycache__")
            )
            # Without isolation nothing is downloaded; the wheel is built from the sdist, so a file missing there is noticed.
            run(SYSTEM, "-m", "build", "--no-isolation", "--outdir", os.path.join(folder, "dist"), cwd=source)
            (wheel,) = glob.glob(os.path.join(folder, "dist", "*.whl"))
            (sdist,) = glob.glob(os.path.join(folder, "dist", "*.tar.gz"))
            with tarfile.open(sdist) as archive:
                self.look([name.replace("src/", "", 1).split("/", 1)[-1] for name in archive.getnames()])
            with zipfile.ZipFile(wheel) as archive:
                self.look(archive.namelist())
                metadata = archive.read([n for n in archive.namelist() if n.endswith("METADATA")][0]).decode()
            for line in ("Name: lubdub", "Requires-Python: >=3.9", "License: Apache-2.0"):
                self.assertIn(line, metadata)
            required = re.findall("Requires-Dist: (.*)", metadata)
            self.assertEqual([one for one in required if "extra ==" not in one], [])
            empty = os.path.join(folder, "empty")
            run(SYSTEM, "-m", "venv", empty, cwd=folder)
            python = os.path.join(empty, "bin", "python")
            run(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel, cwd=folder)
            self.assertIn("it works", run(python, "-c", PROGRAM, cwd=folder))

    def look(self, names: List[str]) -> None:
        found = {name for name in names if name.startswith("lubdub/")}
        wanted = {
            os.path.relpath(path, os.path.join(SDK, "src"))
            for path in glob.glob(os.path.join(SDK, "src", "lubdub", "**", "*.py"), recursive=True)
        }
        self.assertEqual({n for n in found if n.endswith(".py")}, wanted)
        self.assertIn("lubdub/py.typed", found)

    def test_the_version_is_that_of_the_release(self) -> None:
        with open(os.path.join(REPOSITORY, "cmd", "lubdub", "versioncmd.go"), encoding="utf-8") as file:
            release = re.search(r'const release = "(.*)"', file.read())
        with open(os.path.join(SDK, "src", "lubdub", "_version.py"), encoding="utf-8") as file:
            ours = re.search(r'__version__ = "(.*)"', file.read())
        assert release is not None and ours is not None
        self.assertEqual(ours[1], release[1])
