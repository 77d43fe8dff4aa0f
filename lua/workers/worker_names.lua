-- Purpose: reads the fields of workers that never change and that identify their other keys.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:worker:<scope>/<id> of each worker
-- ARGV: none
-- Reply: for each worker its machine ('' : the worker does not exist), its lineage and its identity ('' : none)
-- Cost: O(workers)
local reply = {}
for i, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 'm', 'ln', 'id')
  for j = 1, 3 do reply[#reply + 1] = f[j] or '' end
end
return reply
