-- Purpose: reads the states of tasks that a request waits for, and has the ends of unfinished ones announced.
-- Guarantees: an end after the reply is announced on the channel that wakes requests (lib/wake.lua), on every replica;
--   repeating it changes nothing.
-- KEYS: lubdub:{shard}:task:<scope>/<id> of each task
-- ARGV: none
-- Reply: for each task its state, a letter ('' : the task does not exist)
-- Cost: O(tasks); at most 200 a call
local reply = {}
for i, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 's', 'aw')
  local state = f[1] or ''
  if (state == 'Q' or state == 'D' or state == 'R') and not f[2] then redis.call('HSET', key, 'aw', '1') end
  reply[i] = state
end
return reply
