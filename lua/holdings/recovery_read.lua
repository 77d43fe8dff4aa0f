-- Purpose: reads the unfinished parts of recoveries.
-- Guarantees: writes nothing.
-- KEYS: for each worker lubdub:{shard}:recovery:<scope>/<id>, …:worker:<scope>/<id>
-- ARGV: none
-- Reply: for each worker {shards that are not done}, its reason, 1 if its tasks count as lost, else '', its last heartbeat and
--   its end in wall ms, its timeout ms, its queue, its silence then and how long its end was due, ms, its last heartbeat and
--   when the mass-expiry brake held it, in shard time; '' for each that is not known
-- Cost: O(workers × shards)
local reply = {}
for i = 1, #KEYS, 2 do
  local f = redis.call('HMGET', KEYS[i + 1], 'r', 'll', 'lb', 'e', 't', 'q', 'si', 'lg', 'bl', 'br')
  reply[#reply + 1] = redis.call('SMEMBERS', KEYS[i])
  for j = 1, 10 do reply[#reply + 1] = f[j] or '' end
end
return reply
