-- Purpose: returns which workers have ended and are not being recovered: whatever they still hold nobody will end.
-- Guarantees: writes nothing. Both are for good: an OFFLINE worker never comes back, and one without a record registers
--   anew, as another. A recovery that is under way is entered in the step that ends the worker.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:recoveries, then …:worker:<scope>/<id> of each worker
-- ARGV: <scope>/<id> of each worker
-- Reply: shard time ms, then for each worker 1 when it is OFFLINE, 2 when it has no record, 0 otherwise
-- Cost: O(log n) for each
--#include lib/clock.lua
local reply = {(shard_time(KEYS[1]))}
for i, name in ipairs(ARGV) do
  local status = redis.call('HGET', KEYS[i + 2], 's')
  local ended = not status and 2 or status == 'F' and 1 or 0
  reply[i + 1] = redis.call('ZSCORE', KEYS[2], name) and 0 or ended
end
return reply
