-- Purpose: a task in the set of waiting tasks, and in the set of tasks that a worker holds. Needs clock, shard and digits.
--#include lib/wake.lua
--#include lib/member.lua
--#include lib/ready.lua
--#include lib/held.lua

-- Makes the task claimable. Only the first one of its class wakes waiting claims: they have seen the class empty, and read
-- until it is empty again. `since`: the task has waited since then (nil: now); `recorded`: its record has that already.
local function make_ready(task, since, recorded)
  local class = class_of(task)
  local first = #redis.call('ZRANGEBYLEX', READY, '[' .. class, '(' .. class .. '\255', 'LIMIT', 0, 1) == 0
  task.f.rd = since or now
  if not recorded then redis.call('HSET', task.key, 'rd', task.f.rd) end
  redis.call('ZADD', READY, 0, ready_entry(task))
  if first then wake_queue(READY, class) end
end

local function unready(task)
  redis.call('ZREM', READY, ready_entry(task))
  redis.call('HDEL', task.key, 'rd')
  task.f.rd = nil
end

-- Removes the pin of a placed task that is not ready, so that it is placed again at a time; until then any worker that can run
-- it may claim it.
local function unplace(task, at)
  redis.call('HDEL', task.key, 'pn')
  task.f.pn = nil
  redis.call('ZADD', DUE, at, 'p:' .. task.name)
end

-- Frees the place that the current attempt takes at its worker, and notifies a claim of that worker which waits for one
-- (wake_when_free.lua requests that), once in a call.
local checked = {}
local function release_place(task)
  write('ZREM', HELD, held_entry(task))
  local request = '~' .. task.f.w
  if checked[request] then return end
  checked[request] = true
  if redis.call('ZSCORE', HELD, request) then
    write('ZREM', HELD, request)
    wake_worker(task.scope .. '/' .. task.f.w)
  end
end

-- Leaves a notice for the worker of the current attempt, which the sweeper takes to the worker's shard. `kind`: c (a cancel is
-- pending), l (the attempt was lost); `detail`: the cancel's reason as JSON string, or why it was lost.
local function leave_notice(task, kind, detail)
  if held_by(task) and (task.f.s == 'D' or task.f.s == 'R') then
    write('ZADD', OUTBOX, NOW, task.f.w .. '\t' .. member_of(task) .. '\t' .. kind .. '\t' .. detail)
  end
end
