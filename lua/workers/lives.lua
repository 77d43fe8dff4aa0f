-- Purpose: reads when the last registrations of some lineages were alive.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:lives:<scope>/<lineage> of each
-- ARGV: none
-- Reply: for each {<began>:<ended>:<l if it was lost, else p>}, wall ms, in the order of their ends
-- Cost: O(registrations), at most 100 of each lineage; at most 50 a call
local reply = {}
for i, key in ipairs(KEYS) do reply[i] = redis.call('LRANGE', key, 0, -1) end
return reply
