"""The generated files match the OpenAPI document."""

import os
import runpy
import unittest

from .helpers import HERE


class Generated(unittest.TestCase):
    def test_types_and_calls_are_current(self) -> None:
        generate = runpy.run_path(os.path.join(os.path.dirname(HERE), "tools", "generate.py"))
        for file, text in generate["files"]().items():
            self.assertEqual(file.read_text(encoding="utf-8"), text, "run sdk/python/tools/generate.py")
