-- Purpose: reads the conditions for the end of a drain, before what the workers hold is counted.
-- Guarantees: writes nothing. While a worker drains, reservations only end, so a worker without any gets no more tasks.
-- KEYS: for each worker lubdub:{shard}:worker:<scope>/<id> and …:reserved:<scope>/<id>
-- ARGV: none
-- Reply: for each worker when its drain began, wall ms, or '' if it does not drain or one of its claims is in progress
-- Cost: O(workers)
--#include lib/clock.lua
local reply = {}
for i = 1, #KEYS, 2 do
  local f = redis.call('HMGET', KEYS[i], 's', 'ds')
  local claims = redis.call('ZCOUNT', KEYS[i + 1], '(' .. string.format('%.0f', now), '+inf')
  reply[#reply + 1] = f[1] == 'D' and claims == 0 and f[2] or ''
end
return reply
