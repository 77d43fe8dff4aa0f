-- Purpose: reads the machines and versions of workers, which never change.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:worker:<scope>/<id> of each worker
-- ARGV: none
-- Reply: for each worker its machine ('': the worker does not exist) and its version ('': it has none)
-- Cost: O(workers)
local reply = {}
for _, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 'm', 'v')
  reply[#reply + 1] = f[1] or ''
  reply[#reply + 1] = f[2] or ''
end
return reply
