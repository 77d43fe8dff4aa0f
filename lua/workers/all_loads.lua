-- Purpose: counts what every worker holds in a shard, and what waits there in some queues for one worker alone: for many
--   workers at once this is less work than a count for each (loads.lua).
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:held, 2 …:ready
-- ARGV: 1 limit of entries to examine, then <scope>/<queue> of each queue
-- Reply: {1, for each worker with any its id, how many attempts it holds and how many tasks wait for it}, or {0} if there are
--   more than the limit
-- Cost: O(limit)
--#include lib/ready.lua
--#include lib/held.lua
local pinned = 0
for i = 2, #ARGV do
  pinned = pinned + redis.call('ZLEXCOUNT', KEYS[2], '[' .. ARGV[i] .. '/0', '(' .. ARGV[i] .. '0')
end
if redis.call('ZCARD', KEYS[1]) + pinned > tonumber(ARGV[1]) then return {0} end
local reply, at = {1}, {}
local function count(worker, field)
  local i = at[worker]
  if not i then
    i = #reply + 1
    at[worker] = i
    reply[i], reply[i + 1], reply[i + 2] = worker, 0, 0
  end
  reply[i + field] = reply[i + field] + 1
end
for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local worker = holder_in(entry)
  if worker then count(worker, 1) end
end
for i = 2, pinned > 0 and #ARGV or 1 do
  local entries = redis.call('ZRANGEBYLEX', KEYS[2], '[' .. ARGV[i] .. '/0', '(' .. ARGV[i] .. '0')
  for _, entry in ipairs(entries) do count(pin_in(entry), 2) end
end
return reply
