"""The tests. After half an hour a test that hangs prints its stack and ends."""

import faulthandler

faulthandler.dump_traceback_later(1800, exit=True)
