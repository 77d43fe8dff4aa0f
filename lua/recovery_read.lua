-- Purpose: reads what is left to do of recoveries.
-- Guarantees: writes nothing.
-- KEYS: for each worker lubdub:{shard}:recovery:<scope>/<id>, …:worker:<scope>/<id>
-- ARGV: none
-- Reply: for each worker {shards that are not done}, its reason and 1 when its tasks count as lost, else ''
-- Cost: O(workers × shards)
local reply = {}
for i = 1, #KEYS, 2 do
  local f = redis.call('HMGET', KEYS[i + 1], 'r', 'll')
  reply[#reply + 1] = redis.call('SMEMBERS', KEYS[i])
  reply[#reply + 1] = f[1] or ''
  reply[#reply + 1] = f[2] or ''
end
return reply
