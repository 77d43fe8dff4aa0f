-- Purpose: compares entries about workers with their records, and the records with all entries that they need, and repairs
--   differences: lists, machines, checks, drains, recoveries.
-- Guarantees: everything is checked again in this step; correct entries are left unchanged; each repair is an event.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), then for each worker the ten of worker_register.lua
-- ARGV: 1 retention ms, 2 shards, then for each worker scope, id, machine, the set of the entry (workers, workerbeats,
--   workerdue, recoveries; machineworkers of that machine; machine: it is the machine's own) and the entry
-- Reply: for each worker {what was repaired}
-- Cost: O(log n + shards) for each; at most 25 a call
--#include lib/clock.lua
--#include lib/worker.lua
local L = shard_time(CLOCK)
local retention, shards = tonumber(ARGV[1]), tonumber(ARGV[2])
local LETTERS = {'N', 'D', 'F'}
local SETS = {workerbeats = WORKERBEATS, workerdue = WORKERDUE, recoveries = RECOVERIES}
local RESUMING_MS = 60000 -- the workers of a machine are resumed one by one
local done

local function repaired(w, what)
  done[#done + 1] = what
  local emit_event = w.id ~= '' and emit or emit_machine
  emit_event(w, 'system.repaired', '{"what":"' .. what .. '"}')
end

local function ensure(w, what, key, score, member)
  if redis.call('ZSCORE', key, member) then return end
  redis.call('ZADD', key, score, member)
  repaired(w, what)
end

local function remove(w, what, key, member)
  if redis.call('ZREM', key, member) == 1 then repaired(w, what) end
end

-- Entries that only lists and counts use are repaired without an event: a release that does not know them may have written
-- concurrently.
local function relist(member)
  if redis.call('ZADD', WORKERS, 0, member) == 1 then done[#done + 1] = 'missing_list' end
end

local function unlist(member)
  if redis.call('ZREM', WORKERS, member) == 1 then done[#done + 1] = 'stray_list' end
end

-- Lists a machine under its status alone; nil: it does not exist.
local function list_machine(w, is)
  for _, s in ipairs(LETTERS) do
    if s == is then relist(machine_entry(w.scope, s, w.f.m)) else unlist(machine_entry(w.scope, s, w.f.m)) end
  end
end

local function check_machine(w)
  local online, draining = count_machine(w.members, 'N'), count_machine(w.members, 'D')
  local is = online > 0 and 'N' or draining > 0 and 'D' or 'F'
  local entry = 'm:' .. w.scope .. '/' .. w.f.m
  if redis.call('ZCARD', w.members) == 0 and is_closed(w) then
    ensure(w, 'missing_retention', WORKERDUE, string.format('%.0f', now + EMPTY_MS), entry)
    ensure(w, 'missing_machine', WORKERS, 0, w.scope .. '/M/' .. w.f.m)
    list_machine(w, redis.call('HGET', w.machine, 's'))
    return
  end
  remove(w, 'stray_due', WORKERDUE, entry)
  if redis.call('ZCARD', w.members) == 0 then
    if redis.call('DEL', w.machine, w.periods) > 0 then repaired(w, 'stray_machine') end
    list_machine(w, nil)
    remove(w, 'stray_machine', WORKERS, w.scope .. '/M/' .. w.f.m)
    return
  end
  if redis.call('HGET', w.machine, 's') ~= is then
    update_machine(w)
    repaired(w, 'machine_status')
  end
  ensure(w, 'missing_machine', WORKERS, 0, w.scope .. '/M/' .. w.f.m)
  list_machine(w, is)
end

-- Reports whether a worker that registered on a drained machine still has to wait, or is about to be resumed.
local function waits(w)
  local m = redis.call('HMGET', w.machine, 'ds', 'rs')
  return m[1] or m[2] and now - m[2] < RESUMING_MS
end

local function check(w)
  local f = w.f
  for _, s in ipairs(LETTERS) do
    if s == f.s then
      ensure(w, 'missing_worker', WORKERS, 0, w.scope .. '/' .. s .. '/' .. w.id)
      ensure(w, 'machine_counts', w.members, 0, s .. '/' .. w.id)
    else
      remove(w, 'stray_worker', WORKERS, w.scope .. '/' .. s .. '/' .. w.id)
      remove(w, 'machine_counts', w.members, s .. '/' .. w.id)
    end
  end
  relist(queue_entry(w))
  check_machine(w)
  if f.s ~= 'F' and (f.la or f.pb) then relist('|' .. w.name) else unlist('|' .. w.name) end
  if f.s ~= 'F' then
    ensure(w, 'missing_look', WORKERBEATS, f.bl and next_check(f) or L, w.name)
    if f.s ~= 'D' then return end
    if f.md ~= 'w' then
      ensure(w, 'missing_drain', WORKERDUE, now, 'g:' .. w.name)
    elseif not waits(w) then
      resume(w)
      repaired(w, 'stuck_drain')
    end
    return
  end
  remove(w, 'stray_look', WORKERBEATS, w.name)
  if f.ll and f.e then relist(lost_entry(w)) end
  ensure(w, 'missing_retention', WORKERDUE, string.format('%.0f', now + (f.ho and EMPTY_MS or retention)), 'x:' .. w.name)
  local entered, left = redis.call('ZSCORE', RECOVERIES, w.name), redis.call('SCARD', w.recovery)
  if entered and left == 0 then -- a recovery without shards would never find its last shard done
    for shard = 0, shards - 1 do redis.call('SADD', w.recovery, shard) end
    repaired(w, 'stuck_recovery')
  elseif left > 0 and not entered then
    redis.call('ZADD', RECOVERIES, now, w.name)
    repaired(w, 'missing_recovery')
  end
end

local reply = {}
for n = 1, (#ARGV - 2) / 5 do
  local scope, id, machine, kind, entry = unpack(ARGV, 5 * n - 2, 5 * n + 2)
  local w = open_worker(8 + KEYS_PER_WORKER * (n - 1), scope, id)
  done = {}
  reply[n] = done
  if w.f then
    local letter = string.sub(entry, 1, 2)
    if kind == 'workerdue' and (letter == 'g:' and w.f.s ~= 'D' or letter == 'x:' and w.f.s ~= 'F') then
      remove(w, 'stray_due', WORKERDUE, entry)
    end
    local listed = string.sub(entry, 1, 1)
    if listed == '}' and entry ~= queue_entry(w) or listed == '~' and not (w.f.ll and w.f.e and entry == lost_entry(w)) then
      unlist(entry)
    end
    check(w)
  else
    w.f = {m = machine}
    if kind == 'machineworkers' or kind == 'machine' or kind == 'workerdue' and string.sub(entry, 1, 2) == 'm:' then
      if kind == 'machineworkers' then remove(w, 'machine_counts', w.members, entry) end
      check_machine(w)
    else
      unlist('|' .. w.name)
      if string.find(entry, '^[}~]') then unlist(entry) end
      for _, s in ipairs(LETTERS) do remove(w, 'stray_worker', WORKERS, scope .. '/' .. s .. '/' .. id) end
      if kind ~= 'workers' and (kind ~= 'recoveries' or redis.call('SCARD', w.recovery) == 0) then
        remove(w, 'stray_' .. kind, SETS[kind], entry)
      end
    end
  end
end
return reply
