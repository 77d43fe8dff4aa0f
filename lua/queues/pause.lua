-- Purpose: pauses a queue in one shard, or lets it go on.
-- Guarantees: repeating it changes nothing. A paused queue takes tasks and hands none out (ready.lua, claim.lua). A
--   workspace has no more paused queues than the limit.
-- KEYS: 1 lubdub:{shard}:pauses
-- ARGV: 1 <scope>/<queue>, 2 1 to pause, '' to go on, 3 1 to wake those who wait for the queue's tasks, else '',
--   4 limit of paused queues of the workspace, or '' where another shard has judged that
-- Reply: {OK} or {REFUSED} when it would be more than the limit
-- Cost: O(log n)
--#include lib/codes.lua
--#include lib/wake.lua
local queue = ARGV[1]
if ARGV[2] == '1' then
  local scope = string.match(queue, '^[^/]*/[^/]*/')
  local function paused() return redis.call('ZLEXCOUNT', KEYS[1], '[' .. scope, '(' .. scope .. '\255') end
  if ARGV[4] ~= '' and not redis.call('ZSCORE', KEYS[1], queue) and paused() >= tonumber(ARGV[4]) then
    return {REFUSED}
  end
  redis.call('ZADD', KEYS[1], 0, queue)
else
  redis.call('ZREM', KEYS[1], queue)
end
if ARGV[3] == '1' then wake_queue(KEYS[1], queue) end
return {OK}
