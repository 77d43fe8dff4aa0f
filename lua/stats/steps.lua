-- Purpose: reads steps of time.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{0}:step:<step> of each
-- ARGV: none
-- Reply: for each its fields as name and value; none if the step does not exist
-- Cost: O(fields of each); at most 30 a call
local reply = {}
for i, key in ipairs(KEYS) do reply[i] = redis.call('HGETALL', key) end
return reply
