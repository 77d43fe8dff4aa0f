-- Purpose: compares entries of one set with the tasks' records, and the records with all entries that they need, and repairs
--   differences.
-- Guarantees: everything is checked again in this step, so a transition that comes in between is never undone; correct entries
--   are left unchanged; each repair is an event. Nothing is ended earlier than it would have been: a lost timer starts again,
--   an attempt that was lost from its set gets a whole timeout.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 the set that is walked over, 14 …:fences, then five for each task:
--   …:task:<scope>/<id>, …:doc:<scope>/<id>, …:history:<scope>/<id>, …:run:<scope>/<run>, …:beats:<timeoutMs>
-- ARGV: 1 the kind of set (its name in docs/redis-keys.md), 2 its timeout if it is a beats set, 3 sweeper, 4 retention ms, 5
--   default cancel grace ms, 6 default start timeout ms of a claimed attempt, 7 default token life s, 8 timeout ms of workers,
--   then for each task scope, id, its entry and the state of the worker that the entry names (1 it is OFFLINE, 2 it has no
--   record, else '')
-- Reply: for each task {what was repaired}
-- Cost: O(log n) for each, and its events; at most 25 a call
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/cancel.lua
local SET, FENCES = KEYS[13], KEYS[14]
local L = shard_time(CLOCK)
local kind, set_timeout, sweeper, retention = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local hash = kind == 'progress' or kind == 'cancels'
actor = sweeper
local done

local function repaired(task, what)
  done[#done + 1] = what
  emit(task, 'system.repaired', '{"what":"' .. what .. '"}')
end

local function in_set(key, member) return redis.call('ZSCORE', key, member) end

-- Adds a missing entry to a sorted set.
local function ensure(task, what, key, score, member)
  if in_set(key, member) then return end
  redis.call('ZADD', key, score, member)
  repaired(task, what)
end

-- Entries that only lists and counts use, and those of SCHEDULED tasks: they are repaired without an event, since a release
-- without these lists may have written concurrently.
local function relist(key, member)
  if in_set(key, member) then return end
  redis.call('ZADD', key, 0, member)
  done[#done + 1] = 'missing_list'
end

local function is_for_lists(task, entry)
  return kind == 'ix' and (string.find(entry, '^[{|}]') or string.find(entry, '^[^/]+/[^/]+/W/') or task.f and task.f.sl)
end

-- Reports whether the record justifies an entry, or, for a verdict, whether it is recent enough.
local function justified(task, entry)
  local f = task.f
  local first = kind == 'ix' and string.sub(entry, 1, 1)
  if first == '}' then return (tonumber(string.match(entry, '^[^/]*/[^/]*/(%d+)/')) or 0) > now - retention end
  if not f then return false end
  if first == '{' then return f.q and is_live(f.s) and entry == running_entry(task) end
  if first == '|' then return f.e and entry == end_entry(task, f.s, f.e) end
  local s = f.s
  local live, member = s == 'D' or s == 'R', member_of(task)
  if kind == 'ix' then
    return entry == task.scope .. '/' .. list_letter(f) .. '/' .. task.id or is_listed(f.z) and entry == size_entry(task, f.z)
  end
  if kind == 'beats' then return s == 'R' and entry == member and f.t == set_timeout end
  if kind == 'progress' then return s == 'R' and entry == member end
  if kind == 'cancels' then return s == 'R' and entry == member and f.cr end
  if kind == 'ready' then return s == 'Q' and f.rd and entry == ready_entry(task) end
  if kind == 'held' then return live and held_by(task) and entry == held_entry(task) end
  local letter, of = string.sub(entry, 1, 1), string.sub(entry, 3)
  if letter == 's' then return s == 'D' and of == member end
  if letter == 'r' then return s == 'R' and of == member and f.rt end
  if letter == 'c' then return s == 'R' and of == member and f.cr end
  if letter == 'd' then return (live or s == 'Q') and f.x end
  if letter == 'b' then return s == 'Q' and f.n end
  if letter == 'p' then return s == 'Q' and f.pl and not f.pn end
  return letter == 'x' and not live and s ~= 'Q'
end

local function check_queued(task)
  local f = task.f
  if f.n then
    ensure(task, 'missing_due', DUE, f.n, 'b:' .. task.name)
  elseif not (f.x and tonumber(f.x) <= now) and not (f.rd and in_set(READY, ready_entry(task))) then
    make_ready(task, f.rd)
    repaired(task, 'missing_ready')
  end
  if f.pl and not f.pn then
    ensure(task, 'missing_due', DUE, f.n or now, 'p:' .. task.name)
  elseif f.pl and f.rd and redis.call('ZSCORE', FENCES, f.pn) and now - redis.call('ZSCORE', FENCES, f.pn) > 60000 then
    local since = f.rd -- the recovery of its worker should have freed it long ago
    unready(task)
    unplace(task, now)
    make_ready(task, since)
    repaired(task, 'placed_on_ended_worker')
  end
end

local function check_running(task)
  local f, member = task.f, member_of(task)
  if redis.call('SADD', TIMEOUTS, f.t) == 1 then
    redis.call('ZADD', task.beats, NEVER, SENTINEL)
    repaired(task, 'missing_timeout')
  end
  ensure(task, 'missing_beat', task.beats, L, member)
  if f.rt then ensure(task, 'missing_timer', TIMERS, L + f.rt, 'r:' .. member) end
  if not f.cr then return end
  local cancel = redis.call('HGET', CANCELS, member)
  if not cancel then
    cancel = pack_cancel(f.g or ARGV[5], '', redis.call('HGET', task.doc, 'cancelReason') or '')
    redis.call('HSET', CANCELS, member, cancel)
    repaired(task, 'missing_cancel')
  end
  local grace, delivered = unpack_cancel(cancel)
  if grace and delivered ~= '' then ensure(task, 'missing_timer', TIMERS, delivered + grace, 'c:' .. member) end
end

local function check(task)
  local f = task.f
  if f.sl and f.s ~= 'Q' then unschedule(task) end -- a release without SCHEDULED has moved it
  if f.sl then
    relist(IX, task.scope .. '/W/' .. task.id)
    if f.u then
      relist(task.run, 'W/' .. task.id)
      redis.call('ZREM', task.run, 'Q/' .. task.id)
    end
  else
    ensure(task, 'missing_ix', IX, 0, task.scope .. '/' .. f.s .. '/' .. task.id)
    if f.u then ensure(task, 'missing_run', task.run, 0, f.s .. '/' .. task.id) end
  end
  if is_listed(f.z) then ensure(task, 'missing_ix', IX, 0, size_entry(task, f.z)) end
  if f.s == 'Q' then
    check_queued(task)
  elseif f.s == 'D' then
    local start = f.so or held_by(task) and ARGV[6] or (f.l or ARGV[7]) * 1000
    ensure(task, 'missing_timer', TIMERS, L + start, 's:' .. member_of(task))
  elseif f.s == 'R' then
    check_running(task)
  else
    ensure(task, 'missing_due', DUE, digits(now + retention), 'x:' .. task.name)
    if f.e then relist(IX, end_entry(task, f.s, f.e)) end
    return
  end
  if f.q and is_live(f.s) then relist(IX, running_entry(task)) end
  if f.x then ensure(task, 'missing_due', DUE, f.x, 'd:' .. task.name) end
  if f.s ~= 'Q' and held_by(task) then ensure(task, 'missing_held', HELD, 0, held_entry(task)) end
end

-- Reports whether an attempt has lost its worker for good. A store that lost the worker's record may have lost a live one:
-- then only an attempt without its own timeout, which was silent for the timeout of a worker, is taken.
local function has_lost_worker(task, ended)
  if ended ~= '2' then return ended == '1' end
  local last_beat = beat_of(task, tonumber(redis.call('ZSCORE', task.beats, member_of(task))))
  return task.f.t == '0' and last_beat and L - last_beat > tonumber(ARGV[8])
end

local reply = {}
for n = 1, (#ARGV - 8) / 4 do
  local scope, id, entry, ended = unpack(ARGV, 4 * n + 5, 4 * n + 8)
  local task = open_task(TASKS + 2 + KEYS_PER_TASK * (n - 1), scope, id)
  done = {}
  reply[n] = done
  local exists = redis.call(hash and 'HEXISTS' or 'ZSCORE', SET, entry)
  if exists and exists ~= 0 then
    if not justified(task, entry) then
      redis.call(hash and 'HDEL' or 'ZREM', SET, entry)
      if is_for_lists(task, entry) then
        done[#done + 1] = 'stray_list'
      else
        repaired(task, 'stray_' .. kind)
      end
    elseif has_lost_worker(task, ended) then
      repaired(task, 'held_by_ended_worker')
      verdict(task, {outcome = 'LOST', reason = 'WORKER_LOST', lag = 0, sweeper = sweeper, L = L, retryable = true,
        loss = true}, retention)
    end
  end
  if task.f then check(task) end
end
return reply
