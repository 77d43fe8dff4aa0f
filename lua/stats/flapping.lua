-- Purpose: counts flapping workers and machines in a shard.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:flapping
-- ARGV: none
-- Reply: {lineages of workers, machines}
-- Cost: O(flapping ones), at most 10,000
--#include lib/clock.lua
local workers, machines = 0, 0
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now), '+inf')) do
  if string.sub(name, 1, 1) == 'w' then workers = workers + 1 else machines = machines + 1 end
end
return {workers, machines}
