-- Purpose: reads the states of tasks that a request waits for, and has the ends of unfinished ones announced.
-- Guarantees: an end after the reply is announced on the channel that wakes requests (lib/wake.lua), unless the mark is lost
--   or Redis refused it for lack of memory; repeating it changes nothing.
-- KEYS: lubdub:{shard}:task:<scope>/<id> of each task
-- ARGV: none
-- Reply: for each task its state, a letter ('' : the task does not exist), and why it failed or was requeued, or ''
-- Cost: O(tasks); at most 200 a call
local reply = {}
for _, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 's', 'r', 'aw')
  local state = f[1] or ''
  if (state == 'Q' or state == 'D' or state == 'R') and not f[3] then redis.pcall('HSET', key, 'aw', '1') end
  reply[#reply + 1] = state
  reply[#reply + 1] = f[2] or ''
end
return reply
