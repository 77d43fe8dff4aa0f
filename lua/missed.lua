-- Purpose: remembers which attempts a worker's inventory missed, and tells which ones it misses for the second time.
-- Guarantees: an attempt that an inventory lists, or that has ended, is forgotten; two inventories in quick succession
--   count as one.
-- KEYS: 1 lubdub:{shard}:missed:<scope>/<worker>
-- ARGV: 1 ms that must lie between the two, 2 life ms, then the entries in held that this inventory missed
-- Reply: those that the one before missed too
-- Cost: O(entries)
--#include lib/clock.lua
local before, again = {}, {}
local raw = redis.call('HGETALL', KEYS[1])
for i = 1, #raw, 2 do before[raw[i]] = tonumber(raw[i + 1]) end
redis.call('DEL', KEYS[1])
for i = 3, #ARGV do
  local since = before[ARGV[i]]
  if since and now - since >= tonumber(ARGV[1]) then
    again[#again + 1] = ARGV[i]
  end
  redis.call('HSET', KEYS[1], ARGV[i], since or now)
end
if #ARGV > 2 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return again
