-- Purpose: returns which workers have ended and are not being recovered, so that nothing would end what they still hold.
-- Guarantees: writes nothing. Both results are final: an OFFLINE worker never returns, and one without a record registers
--   again as another one. The step that ends a worker also enters its recovery.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:recoveries, then …:worker:<scope>/<id> of each worker
-- ARGV: <scope>/<id> of each worker
-- Reply: shard time ms, then for each worker 1 if it is OFFLINE, 2 if it has no record, 0 otherwise
-- Cost: O(log n) for each
--#include lib/clock.lua
local reply = {(shard_time(KEYS[1]))}
for i, name in ipairs(ARGV) do
  local status = redis.call('HGET', KEYS[i + 2], 's')
  local ended = not status and 2 or status == 'F' and 1 or 0
  reply[i + 1] = redis.call('ZSCORE', KEYS[2], name) and 0 or ended
end
return reply
