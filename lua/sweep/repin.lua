-- Purpose: pins a placed task that waits in its queue to the newly selected worker.
-- Guarantees: a task that was claimed, pinned or ended in between is left unchanged, and so is one whose worker is fenced; it
--   keeps its position in the order of waiting.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>, 18 …:fences
-- ARGV: 1 scope, 2 id, 3 worker
-- Reply: 1 if it is pinned, else 0
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
local task = open_task(TASKS, ARGV[1], ARGV[2])
local f = task.f
if not f or f.s ~= 'Q' or not f.pl or f.pn or f.n or redis.call('ZSCORE', KEYS[TASKS + KEYS_PER_TASK], ARGV[3]) then
  return 0
end
local since = f.rd
if since then unready(task) end
f.pn = ARGV[3]
redis.call('HSET', task.key, 'pn', f.pn)
if since then make_ready(task, since) end
redis.call('ZREM', DUE, 'p:' .. task.name)
return 1
