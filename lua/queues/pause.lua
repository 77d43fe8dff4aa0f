-- Purpose: pauses a queue in one shard, or resumes it.
-- Guarantees: repeating it changes nothing and writes no event. A paused queue accepts tasks and hands none out (ready.lua,
--   claim.lua). A workspace has no more paused queues than the limit.
-- KEYS: 1 lubdub:{shard}:pauses, 2 …:events
-- ARGV: 1 <scope>/<queue>, 2 1 to pause, '' to resume, 3 1 to wake the claims that wait for the queue's tasks, else '', 4
--   limit of paused queues of the workspace, or '' if another shard has checked it, 5 1 if this shard writes the event, else
--   '', 6 reason for the event as JSON string, '' for none
-- Reply: {OK}, or {REFUSED} if it would exceed the limit
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/event.lua
--#include lib/wake.lua
local queue, changed = ARGV[1], nil
if ARGV[2] == '1' then
  local scope = string.match(queue, '^[^/]*/[^/]*/')
  local function paused() return redis.call('ZLEXCOUNT', KEYS[1], '[' .. scope, '(' .. scope .. '\255') end
  if ARGV[4] ~= '' and not redis.call('ZSCORE', KEYS[1], queue) and paused() >= tonumber(ARGV[4]) then
    return {REFUSED}
  end
  changed = redis.call('ZADD', KEYS[1], 0, queue) == 1 and 'queue.paused'
else
  changed = redis.call('ZREM', KEYS[1], queue) == 1 and 'queue.resumed'
end
if changed and ARGV[5] == '1' then
  local of, name = string.match(queue, '^([^/]*/[^/]*)/(.*)$')
  local data = ARGV[6] ~= '' and '{"reason":' .. ARGV[6] .. '}' or nil
  write_event(KEYS[2], changed, {scope = of, subject = name, queue = name}, data)
end
if ARGV[3] == '1' then wake_queue(KEYS[1], queue) end
return {OK}
