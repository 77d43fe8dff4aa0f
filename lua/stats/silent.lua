-- Purpose: returns by how much the most overdue attempt of a shard is overdue.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, then …:beats:<timeoutMs> of the timeouts in use
-- ARGV: these timeouts, ms
-- Reply: ms; 0: none is overdue
-- Cost: O(log n) for each timeout, at most 437
--#include lib/clock.lua
local L, overdue = shard_time(KEYS[1]), 0
for i, timeout in ipairs(ARGV) do
  local first = redis.call('ZRANGE', KEYS[i + 1], 0, 0, 'WITHSCORES')[2]
  if first then overdue = math.max(overdue, L - first - timeout) end
end
return overdue
