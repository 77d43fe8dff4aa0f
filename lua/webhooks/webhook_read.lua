-- Purpose: reads webhooks' records.
-- Guarantees: writes nothing.
-- KEYS: for each webhook of one shard 1 lubdub:{shard}:webhook:<scope>/<id>, 2 …:hookqueue:, 3 …:hookflight:, 4 …:hookdead: of
--   the same
-- ARGV: none
-- Reply: for each {names and values of the record's fields, number of deliveries that wait or are in progress, number of dead
--   ones}
-- Cost: O(webhooks), at most 25 of 8 KB
local reply = {}
for i = 1, #KEYS, 4 do
  reply[#reply + 1] = {redis.call('HGETALL', KEYS[i]), redis.call('ZCARD', KEYS[i + 1]) + redis.call('ZCARD', KEYS[i + 2]),
    redis.call('ZCARD', KEYS[i + 3])}
end
return reply
