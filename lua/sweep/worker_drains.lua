-- Purpose: reads what the end of a drain depends on, before what the workers hold is counted.
-- Guarantees: writes nothing. Reservations only end while a worker drains, so that one without any gets no more tasks.
-- KEYS: for each worker lubdub:{shard}:worker:<scope>/<id> and …:reserved:<scope>/<id>
-- ARGV: none
-- Reply: for each worker when its drain began, wall ms, or '' when it does not drain or a claim of it is under way
-- Cost: O(workers)
--#include lib/clock.lua
local reply = {}
for i = 1, #KEYS, 2 do
  local f = redis.call('HMGET', KEYS[i], 's', 'ds')
  local claims = redis.call('ZCOUNT', KEYS[i + 1], '(' .. string.format('%.0f', now), '+inf')
  reply[#reply + 1] = f[1] == 'D' and claims == 0 and f[2] or ''
end
return reply
