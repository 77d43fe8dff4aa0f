-- Purpose: tells by how much the attempt of a shard is overdue that is so most.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, then …:beats:<timeoutMs> of the timeouts in use
-- ARGV: these timeouts, ms
-- Reply: ms; 0: none is
-- Cost: O(log n) for each timeout, of which there are 437 at most
--#include lib/clock.lua
local L, overdue = shard_time(KEYS[1]), 0
for i, timeout in ipairs(ARGV) do
  local first = redis.call('ZRANGE', KEYS[i + 1], 0, 0, 'WITHSCORES')[2]
  if first then overdue = math.max(overdue, L - first - timeout) end
end
return overdue
