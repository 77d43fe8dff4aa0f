-- Purpose: hands waiting tasks to a worker that can run them: dispatches the next attempt of each.
-- Guarantees: each is taken by one worker only, and only if it still waits, its queue is not paused, its deadline has not
--   passed and the worker is not fenced; the attempt, its holder, its start or start timeout, and its events are one step; a repeat of
--   the same call gets the same reply.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:pauses, 14 …:fences, then five for each task:
--   …:task:<scope>/<id>, …:doc:<scope>/<id>, …:history:<scope>/<id>, …:run:<scope>/<run>, …:beats:<timeoutMs>
-- ARGV: 1 default token life s, 2 longest token life s, 3 default start timeout ms, 4 worker, 5 hash of the claim's id
--   or '', 6 1 if the worker starts the tasks at once, else '', then four for each task: scope, id, its entry in ready, fence of
--   the attempt
-- Reply: {wall ms, 1 if the worker is fenced, else 0, then for each task {record fields}, {document fields}, {latest history
--   entry}, or {}, {}, {} if it was not taken}
-- Cost: O(log n) for each and the size of the task; two events each; at most 25 a call, and 512 KiB and one task more
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/dispatch.lua
local L = shard_time(CLOCK)
local worker, claim, starts = ARGV[4], ARGV[5] ~= '' and ARGV[5] or nil, ARGV[6] == '1'
local fenced = redis.call('ZSCORE', KEYS[14], worker)
local MAX_BYTES = 524288 -- of documents, of which one may be twice as long: those after it wait for the next claim
local reply, bytes = {now, fenced and 1 or 0}, 0

local function token_life(f)
  if f.lt then return f.lt end
  local life = tonumber(ARGV[1])
  if f.x then life = math.min(math.max(life, math.floor((f.x - now) / 1000) + 1), tonumber(ARGV[2])) end
  return life
end

local paused = {} -- most claims take tasks of one queue
local function is_paused(queue)
  if paused[queue] == nil then paused[queue] = redis.call('ZSCORE', KEYS[13], queue) and true end
  return paused[queue]
end

local function waits(task, entry)
  local f = task.f
  if not f or f.s ~= 'Q' or not f.rd or ready_entry(task) ~= entry then
    redis.call('ZREM', READY, entry) -- an entry without a record
    return false
  end
  if f.x and tonumber(f.x) <= now then -- the sweeper is about to end it
    unready(task)
    return false
  end
  return not fenced and not is_paused(task.scope .. '/' .. f.q) and (f.pn or worker) == worker
end

for n = 1, (#ARGV - 6) / 4 do
  local scope, id, entry, fence = unpack(ARGV, 4 * n + 3, 4 * n + 6)
  local task = open_task(TASKS + 2 + KEYS_PER_TASK * (n - 1), scope, id)
  local f = task.f
  local taken = f and is_live(f.s) and f.f == fence and f.w == worker -- by this very call
  if not taken and bytes < MAX_BYTES and waits(task, entry) then
    dispatch(task, L, {fence = fence, life = token_life(f), start = not starts and (f.so or ARGV[3]) or nil, worker = worker,
      claim = claim})
    taken = true
  end
  local doc = taken and redis.call('HGETALL', task.doc) or {}
  for i = 2, #doc, 2 do bytes = bytes + #doc[i] end
  reply[#reply + 1] = taken and redis.call('HGETALL', task.key) or {}
  reply[#reply + 1] = doc
  reply[#reply + 1] = taken and f.a > 1 and redis.call('LRANGE', task.history, -1, -1) or {}
end
return reply
