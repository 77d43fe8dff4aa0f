-- Purpose: takes what is due for workers in wall time: drains to check (g), records to remove (x), and drained or held
--   machines that have had no worker for 30 days (m; the machine is in the worker's place).
-- Guarantees: each entry is checked again; a draining worker ends when it holds nothing and has drained for a second, or when
--   its deadline has passed; a record is removed with its entries in every index, the last one of a machine with the machine,
--   unless that is drained or held.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), then for each worker the ten of worker_register.lua
-- ARGV: 1 retention ms, 2 shards, 3 ms until a drain is checked again, then for each worker scope, id, entry, when the drain
--   began that was checked, wall ms or '', and 1 if it held nothing then, else ''
-- Reply: for each worker 0 (nothing), 1 (OFFLINE now) or 2 (removed) and its machine
-- Cost: O(log n + shards) for each; at most 25 a call
--#include lib/clock.lua
--#include lib/worker.lua
local retention, shards, again = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local reply = {}
for n = 1, (#ARGV - 3) / 5 do
  local scope, id, entry, began, empty = unpack(ARGV, 5 * n - 1, 5 * n + 3)
  local w = open_worker(8 + KEYS_PER_WORKER * (n - 1), scope, id)
  local f, result = w.f, 0
  local at = tonumber(redis.call('ZSCORE', WORKERDUE, entry))
  if at and at <= now then
    local kind = string.sub(entry, 1, 1)
    redis.call('ZREM', WORKERDUE, entry) -- first: above maxmemory Redis refuses a script that does not free first
    if kind == 'g' and f and f.s == 'D' then
      local deadline = tonumber(f.dd)
      if deadline and deadline <= now then
        retire(w, {reason = 'DRAIN_DEADLINE', shards = shards, retention = retention})
        result = 1
      elseif empty == '1' and began == f.ds and f.ds + DRAINING_MS <= now then
        retire(w, {reason = 'DRAINED', shards = shards, retention = retention})
        result = 1
      else
        redis.call('ZADD', WORKERDUE, math.min(now + again, deadline or NEVER), entry)
      end
    elseif kind == 'x' and (not f or f.s == 'F') and not redis.call('ZSCORE', RECOVERIES, w.name) then
      if f then
        redis.call('ZREM', WORKERS, scope .. '/F/' .. id, queue_entry(w), f.e and lost_entry(w) or '')
        redis.call('ZREM', w.members, 'F/' .. id)
        redis.call('DEL', w.key, w.reserved)
        if redis.call('ZCARD', w.members) == 0 then
          redis.call('DEL', w.periods, w.machine_stales)
          if id ~= f.m and is_closed(w) then -- a host that returns must still find it so
            redis.call('ZADD', WORKERDUE, string.format('%.0f', now + EMPTY_MS), 'm:' .. scope .. '/' .. f.m)
          else
            redis.call('DEL', w.machine)
            forget_machine(scope, f.m)
          end
        end
        result = 2
      end
    elseif kind == 'x' and f and f.s == 'F' then -- its recovery is not done and still needs the reason
      redis.call('ZADD', WORKERDUE, now + 1000, entry)
    elseif kind == 'm' and redis.call('ZCARD', w.members) == 0 then
      redis.call('DEL', w.machine)
      forget_machine(scope, id)
    end
  end
  reply[#reply + 1] = result
  reply[#reply + 1] = f and f.m or ''
end
return reply
