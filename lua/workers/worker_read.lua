-- Purpose: reads workers at one moment.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, then …:worker:<scope>/<id> of each worker
-- ARGV: none
-- Reply: {wall ms, for each worker silent ms or '' and {record fields}}
-- Cost: O(workers)
--#include lib/clock.lua
local L = shard_time(KEYS[1])
local reply = {now}
for i = 2, #KEYS do
  local beat = tonumber(redis.call('HGET', KEYS[i], 'bl'))
  reply[#reply + 1] = beat and string.format('%.0f', L - beat) or ''
  reply[#reply + 1] = redis.call('HGETALL', KEYS[i])
end
return reply
