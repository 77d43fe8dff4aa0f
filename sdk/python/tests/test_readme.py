"""The README's example about tests runs."""

import os
import re
import unittest
from typing import List

import lubdub
from lubdub import testing

from .helpers import HERE


class Readme(unittest.TestCase):
    def test_the_block_about_tests_runs_and_the_others_are_python(self) -> None:
        with open(os.path.join(os.path.dirname(HERE), "README.md"), encoding="utf-8") as file:
            blocks: List[str] = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        self.assertGreaterEqual(len(blocks), 4)
        for block in blocks:
            compiled = compile(block, "README.md", "exec")
            if "lubdub.testing" in block:
                exec(compiled, {"lubdub": lubdub, "testing": testing})
