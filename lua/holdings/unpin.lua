-- Purpose: frees placed tasks that wait for a worker which will not claim them, so that they are placed again.
-- Guarantees: a task that was claimed or ended in between is left unchanged, and so is one that was pinned by its creator;
--   each keeps its position in the order of waiting, and any worker that can run it may claim it until it is placed.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), then five for each task: lubdub:{shard}:task:<scope>/<id>,
--   …:doc:<scope>/<id>, …:history:<scope>/<id>, …:run:<scope>/<run>, …:beats:<timeoutMs>
-- ARGV: scope, id and worker for each task
-- Reply: for each task 1 if it was freed, else 0
-- Cost: O(log n) for each; at most 50 a call
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
local reply = {}
for n = 1, #ARGV / 3 do
  local scope, id, worker = unpack(ARGV, 3 * n - 2, 3 * n)
  local task = open_task(TASKS + KEYS_PER_TASK * (n - 1), scope, id)
  local f = task.f
  reply[n] = 0
  if f and f.s == 'Q' and f.pl and f.pn == worker and f.rd then
    local since = f.rd
    unready(task)
    unplace(task, now)
    make_ready(task, since)
    reply[n] = 1
  end
end
return reply
