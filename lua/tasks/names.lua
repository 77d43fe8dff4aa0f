-- Purpose: reads the fields of tasks that never change and that identify their other keys, and further fields for filters.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:task:<scope>/<id> of each task
-- ARGV: further fields of the record to read
-- Reply: for each task its run ('' : its own), its heartbeat timeout ms ('' : the task does not exist) and those fields
-- Cost: O(tasks); at most 200 a call
local reply = {}
for _, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 'u', 't', unpack(ARGV))
  for i = 1, #ARGV + 2 do reply[#reply + 1] = f[i] or '' end
end
return reply
