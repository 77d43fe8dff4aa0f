"""The README's examples about tests and asyncio run."""

import contextlib
import io
import os
import re
from typing import Any, List

import lubdub
from lubdub import testing
from lubdub._clock import Clock
from lubdub.testing import Server, TOKEN

from .helpers import HERE, PATIENCE, Answer, ReceivedRequest, TestCase


class Readme(TestCase):
    def test_the_blocks_that_are_complete_run_and_the_others_are_python(self) -> None:
        server = Server(clock=Clock())
        self.addCleanup(server.__exit__)

        def answer(request: ReceivedRequest) -> Answer:
            headers = {"Authorization": request.headers.get("authorization", "")}
            found = server.send(request.method, "http://x" + request.path, headers, request.body, PATIENCE)
            return found.status, found.body, {}

        os.environ.update(LUBDUB_URL=self.web(answer).url, LUBDUB_TOKEN=TOKEN)
        with open(os.path.join(os.path.dirname(HERE), "README.md"), encoding="utf-8") as file:
            blocks: List[str] = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        self.assertGreaterEqual(len(blocks), 4)
        ran: List[str] = []
        for block in blocks:
            compiled = compile(block, "README.md", "exec")
            if "lubdub.testing" in block or "asyncio.run" in block:
                names: Any = {"lubdub": lubdub, "testing": testing}
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compiled, names)
                ran.append(printed.getvalue())
        self.assertEqual(ran, ["6\n", ""])
