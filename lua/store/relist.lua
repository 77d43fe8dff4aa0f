-- Purpose: lists workers and running tasks under their queues.
-- Guarantees: according to their records in this step; existing entries stay; nothing is removed.
-- KEYS: 1 lubdub:{shard}:ix, 2 …:workers, then …:task:<scope>/<id> or …:worker:<scope>/<id> of each
-- ARGV: for each 't' or 'w', scope, id
-- Reply: none
-- Cost: O(log n) for each; at most 100 a call
--#include lib/queueentry.lua
local function list_worker(worker, scope, id)
  local queue, status, cordoned, types, runtimes, labels = unpack(redis.call('HMGET', worker, 'q', 's', 'co', 'y', 'rn', 'l'))
  if status then
    redis.call('ZADD', KEYS[2], 0, worker_in_queue(scope, id, queue, status, cordoned, types, runtimes, labels))
  end
end

local function list_task(task, scope, id)
  local queue, state = unpack(redis.call('HMGET', task, 'q', 's'))
  if queue and (state == 'D' or state == 'R') then redis.call('ZADD', KEYS[1], 0, running_in_queue(scope, id, queue)) end
end

for i = 3, #KEYS do
  local kind, scope, id = unpack(ARGV, 3 * i - 8, 3 * i - 6)
  local list = kind == 'w' and list_worker or list_task
  list(KEYS[i], scope, id)
end
return {}
