"""The tests. What waits for ever says where after half an hour, and ends."""

import faulthandler

faulthandler.dump_traceback_later(1800, exit=True)
