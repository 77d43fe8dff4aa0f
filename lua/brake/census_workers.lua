-- Purpose: counts which of some workers are silent.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, then …:worker:<scope>/<id> of each worker
-- ARGV: 1 percent of its timeout after which a worker counts as silent
-- Reply: the number of silent ones
-- Cost: O(workers)
--#include lib/clock.lua
local L, silent = shard_time(KEYS[1]), 0
for i = 2, #KEYS do
  local f = redis.call('HMGET', KEYS[i], 'bl', 't')
  if f[1] and f[2] and L - f[1] >= f[2] * ARGV[1] / 100 then silent = silent + 1 end
end
return silent
