"""Does what `python -m unittest` does, and then ends at once. Tests leave threads behind that do not keep a process alive; an older
interpreter may crash when one of them comes back from a call while it is being taken down, which says nothing about the tests."""

import os
import sys
import unittest

sys.path.insert(0, os.getcwd())  # as -m does
program = unittest.main(module=None, argv=["python -m unittest", *sys.argv[1:]], exit=False)
sys.stdout.flush()
sys.stderr.flush()
os._exit(0 if program.result.wasSuccessful() else 1)
