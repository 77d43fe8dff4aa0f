-- Purpose: a task among those that wait for a worker, and among those that a worker holds. Needs clock, shard and
-- digits.
--#include lib/wake.lua

local function member_of(task) return task.name .. '#' .. digits(task.f.a) .. '.' .. (task.f.f or '') end

-- Tasks that ask the same of a worker form one class: <scope>/<queue>/<pin>/<type>/<runtime>/<labels>/, each part
-- empty when nothing is asked. The entries of a class stand together, oldest first.
local function class_of(task)
  local f = task.f
  return task.scope .. '/' .. f.q .. '/' .. (f.pn or '') .. '/' .. (f.y or '') .. '/' .. (f.rn or '') .. '/'
    .. (f.wl or '') .. '/'
end

-- What follows the class is all that a claim needs to name the task's keys.
local function ready_entry(task)
  local f = task.f
  return class_of(task) .. string.format('%013.0f', tonumber(f.rd)) .. '/' .. task.id .. '/' .. f.t .. '/'
    .. (f.u or '')
end

-- Lets the task be claimed from now on. Only the first of its class wakes those who wait: they have seen the class
-- empty, and look until it is empty again. `since`: it has waited already, from then on.
local function make_ready(task, since)
  local class = class_of(task)
  local first = #redis.call('ZRANGEBYLEX', READY, '[' .. class, '(' .. class .. '\255', 'LIMIT', 0, 1) == 0
  task.f.rd = since or now
  redis.call('HSET', task.key, 'rd', task.f.rd)
  redis.call('ZADD', READY, 0, ready_entry(task))
  if first then wake_queue(READY, class) end
end

local function unready(task)
  redis.call('ZREM', READY, ready_entry(task))
  redis.call('HDEL', task.key, 'rd')
  task.f.rd = nil
end

-- Lets a placed task that is not ready go from its worker, to be placed anew at a time; until then any worker that can
-- run it may have it.
local function unplace(task, at)
  redis.call('HDEL', task.key, 'pn')
  task.f.pn = nil
  redis.call('ZADD', DUE, at, 'p:' .. task.name)
end

-- The worker that holds the current attempt, nil for pushed tasks, which nobody claims. A task without a timeout of its
-- own was claimed, also where the store has lost its queue.
local function held_by(task) return (task.f.q or task.f.t == '0') and task.f.w end

-- <worker>/<attempt>/<timeout ms>/<run>/<claim>: all that recovery, an inventory and a repeated claim need.
local function held_entry(task)
  local f = task.f
  return f.w .. '/' .. member_of(task) .. '/' .. f.t .. '/' .. (f.u or '') .. '/' .. (f.ci or '')
end

-- Frees the place that the current attempt takes at its worker, and tells a claim of that worker which waits for one
-- (tell_when_free.lua asks for that).
local function let_go(task)
  write('ZREM', HELD, held_entry(task))
  local asked = '~' .. task.f.w
  if redis.call('ZSCORE', HELD, asked) then
    write('ZREM', HELD, asked)
    wake_worker(task.scope .. '/' .. task.f.w)
  end
end

-- Leaves word for the worker of the current attempt, which the sweeper takes to the worker's shard. `kind`: c (a
-- cancel is pending), l (the attempt was lost); `detail`: the cancel's reason as JSON string, or why it was lost.
local function tell_worker(task, kind, detail)
  if held_by(task) and (task.f.s == 'D' or task.f.s == 'R') then
    redis.call('ZADD', OUTBOX, NOW, task.f.w .. '\t' .. member_of(task) .. '\t' .. kind .. '\t' .. detail)
  end
end
