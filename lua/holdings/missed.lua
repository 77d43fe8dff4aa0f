-- Purpose: records which attempts a worker's inventory missed, and returns those that two consecutive heartbeats miss.
-- Guarantees: an attempt that an inventory lists, or that has ended, is dropped. Concurrent heartbeats count as one: what a
--   heartbeat misses counts only if it was received after this script ran for the previous one, and so could know the response
--   to that one, in whichever order they arrive. While a claim of the worker is in progress, whose tasks the worker cannot
--   know yet, no miss is recorded for the first time.
-- KEYS: 1 lubdub:{shard}:missed:<scope>/<worker>, 2 …:worker:<scope>/<worker>, 3 …:reserved:<scope>/<worker>
-- ARGV: 1 number of the heartbeat among those with an inventory (worker_beat.lua), 2 life ms, then the entries in held that
--   this inventory missed
-- Reply: those that the previous heartbeat missed too
-- Cost: O(entries + claims in progress)
--#include lib/clock.lua
local before, again = {}, {}
local raw = redis.call('HGETALL', KEYS[1])
for i = 1, #raw, 2 do before[raw[i]] = raw[i + 1] end
redis.call('DEL', KEYS[1])
local received = redis.call('HGET', KEYS[2], 'bn') or ARGV[1]
local claiming = redis.call('ZCOUNT', KEYS[3], '(' .. string.format('%.0f', now), '+inf') > 0
for i = 3, #ARGV do
  local first = before[ARGV[i]]
  if first and tonumber(ARGV[1]) > tonumber(first) then again[#again + 1] = ARGV[i] end
  if first or not claiming then redis.call('HSET', KEYS[1], ARGV[i], first or received) end
end
if #ARGV > 2 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return again
