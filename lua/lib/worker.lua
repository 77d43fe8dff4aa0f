-- Purpose: a worker's record, its machine's, and the common parts of their transitions. Needs clock.
-- Fields of a worker (tracker/schema/fields.go), absent when empty or default; times are wall ms:
--   s status: N online, D draining, F offline; q queue; y types, comma-separated; rn runtimes, comma-separated; n name; m
--   machine; h hostname; p process id; v version; mc how many tasks it takes at once; l labels as JSON; u probe URL; id hash
--   of its identity; ln hash of its lineage; i heartbeat interval, ms; t timeout, ms; bl last heartbeat, shard time; lb the
--   same, wall ms; la since when it is late; pb probes it has responded to since its last heartbeat; px the last of these,
--   shard time; a how many tasks it reports as active; ae of these those that it did not claim; sq last sequence number; bn
--   number of inventories received; tc tasks completed in all; tf tasks failed in all; c when it registered; e since when it
--   is offline; r why it is offline; gr reason from the request for that; dr reason from the request for its drain; ds when
--   its drain began; dd deadline of its drain; dt 1: it knows of its drain; md 1: it drains with its machine, w: it registered
--   on a drained one and waits, draining; ll 1: its lost tasks count as losses; rt attempts recovered from it; rf how many of
--   these failed for good; rx how many of those had used up their retries; ls when it was last selected; hb how many attempts
--   it holds at most; hg reservations that have ended; sp the worker that it superseded; sx when its identity was last taken
--   over, latest first, comma-separated; st when that was reported; br when the mass-expiry brake held it, shard time; si how
--   long it had been silent when it ended, ms; lg how long its end had been due, ms; co since when it is cordoned; cw reason
--   from the request for that, as JSON string; ho 1: it is held offline while its lineage has a hold.
-- Fields of a machine:
--   s status: N, D or F, which follows from its workers'; on since when it is online; c when it was first seen; ds since when
--   it is drained; dd deadline of that; dr reason from the request for it; rs when it was last resumed; ho since when it is
--   held offline; hr reason from the request for that.
--#include lib/primary.lua
--#include lib/event.lua
--#include lib/wake.lua
--#include lib/queueentry.lua
--#include lib/hold.lua
local CLOCK, OUTAGES, EVENTS, WORKERS, WORKERBEATS, WORKERDUE, RECOVERIES = unpack(KEYS, 1, 7)
local KEYS_PER_WORKER = 10
local NEVER = 9007199254740991
local DAY_MS = 86400000
local MAX_PERIODS = 500 -- online periods kept for a machine
local MAX_LIVES = 100   -- registrations kept for a lineage
local MAX_STALES = 1000 -- times kept at which a lineage or a machine was declared stale within a day
local MAX_FLAPPING = 10000 -- flapping lineages and machines kept
local EMPTY_MS = 2592000000 -- how long a drained or held machine without workers, and a held worker, are kept: 30 days
local DRAINING_MS = 1000 -- how long the drain of an idle worker is shown before it ends

-- Opens the worker whose keys begin at KEYS[first]; f is nil if there is no record.
local function open_worker(first, scope, id)
  local w = {scope = scope, id = id, name = scope .. '/' .. id, key = KEYS[first], machine = KEYS[first + 1],
    members = KEYS[first + 2], periods = KEYS[first + 3], stales = KEYS[first + 4], machine_stales = KEYS[first + 5],
    recovery = KEYS[first + 6], identity = KEYS[first + 7], reserved = KEYS[first + 8],
    lives = KEYS[first + 9]}
  local raw = redis.call('HGETALL', w.key)
  if #raw > 0 then
    local f = {}
    for i = 1, #raw, 2 do f[raw[i]] = raw[i + 1] end
    w.f = f
  end
  return w
end

-- Wakes the waiting claims of the worker: they get nothing more.
local function stop_claims(w) wake_worker(w.name) end

local function emit(w, type, data)
  write_event(EVENTS, type, {scope = w.scope, subject = w.id, queue = w.f.q, worker = w.id, machine = w.f.m}, data)
end

-- The same for the worker's machine.
local function emit_machine(w, type, data)
  write_event(EVENTS, type, {scope = w.scope, subject = w.f.m, queue = w.f.q, worker = w.id, machine = w.f.m}, data)
end

local function count_machine(members, status)
  return redis.call('ZLEXCOUNT', members, '(' .. status .. '/', '(' .. status .. '0')
end

-- WORKERS also has entries for counts and lists, after the names of all scopes: machines by status,
-- {<scope>/m/<status>/<machine>, workers that are late, |<scope>/<worker>, workers by queue (lib/queueentry.lua), and workers
-- that were lost, ~<scope>/<ended wall ms>/<worker>.
local function machine_entry(scope, status, machine) return '{' .. scope .. '/m/' .. status .. '/' .. machine end

local function lost_entry(w) return '~' .. w.scope .. '/' .. string.format('%013.0f', tonumber(w.f.e)) .. '/' .. w.id end

local function forget_machine(scope, machine)
  redis.call('ZREM', WORKERS, scope .. '/M/' .. machine, machine_entry(scope, 'N', machine), machine_entry(scope, 'D', machine),
    machine_entry(scope, 'F', machine))
end

-- Sets the machine's status from its workers', and returns it if it has changed. `ended`: until when it was online, wall ms.
local function update_machine(w, ended)
  local was = redis.call('HGET', w.machine, 's')
  local online, draining = count_machine(w.members, 'N'), count_machine(w.members, 'D')
  local is = online > 0 and 'N' or draining > 0 and 'D' or 'F'
  if was == is then return end
  local id = w.f.m
  if not was then
    redis.call('HSET', w.machine, 'c', now)
    redis.call('ZADD', WORKERS, 0, w.scope .. '/M/' .. id)
  end
  if was then redis.call('ZREM', WORKERS, machine_entry(w.scope, was, id)) end
  redis.call('ZADD', WORKERS, 0, machine_entry(w.scope, is, id))
  redis.call('HSET', w.machine, 's', is)
  if is == 'F' then
    local on = redis.call('HGET', w.machine, 'on')
    if on then
      local off = math.max(tonumber(on), math.min(now, ended or now))
      redis.call('RPUSH', w.periods, on .. ':' .. string.format('%.0f', off))
      redis.call('LTRIM', w.periods, -MAX_PERIODS, -1)
    end
    redis.call('HDEL', w.machine, 'on')
  elseif not was or was == 'F' then
    redis.call('HSET', w.machine, 'on', now)
  end
  local names = {N = 'machine.online', D = 'machine.draining', F = 'machine.offline'}
  emit_machine(w, names[is])
  return is
end

local function queue_entry(w)
  local f = w.f
  return worker_in_queue(w.scope, w.id, f.q, f.s, f.co, f.y, f.rn, f.l)
end

-- Moves the worker from the lists of its previous status (nil: it had none) to those of its new one.
local function set_status(w, status)
  local was = w.f.s
  if was == status then return end
  if was then
    redis.call('ZREM', WORKERS, w.scope .. '/' .. was .. '/' .. w.id, queue_entry(w))
    redis.call('ZREM', w.members, was .. '/' .. w.id)
  end
  w.f.s = status
  redis.call('ZADD', WORKERS, 0, w.scope .. '/' .. status .. '/' .. w.id, 0, queue_entry(w))
  redis.call('ZADD', w.members, 0, status .. '/' .. w.id)
  redis.call('HSET', w.key, 's', status)
end

-- Sets since when the worker is cordoned, nil if it is not, and lists it accordingly.
local function set_cordon(w, since)
  redis.call('ZREM', WORKERS, queue_entry(w))
  w.f.co = since
  redis.call('ZADD', WORKERS, 0, queue_entry(w))
  if since then redis.call('HSET', w.key, 'co', since) else redis.call('HDEL', w.key, 'co', 'cw') end
end

-- Makes a new worker ONLINE or, if its machine is drained, lets it wait.
local function enter(w)
  local m = redis.call('HMGET', w.machine, 'ds', 'dr')
  if not m[1] then return set_status(w, 'N') end
  redis.call('HSET', w.key, 'md', 'w', 'ds', now, 'dr', m[2] or 'MACHINE_DRAINED')
  redis.call('ZREM', WORKERDUE, 'm:' .. w.scope .. '/' .. w.f.m)
  set_status(w, 'D')
  emit(w, 'worker.draining', '{"deadlineMs":null,"machineDrained":true}')
end

-- Stops new tasks for the worker. `reason`: as JSON string, null for none; `data`: of the event.
local function cordon(w, reason, data)
  set_cordon(w, now)
  if reason ~= 'null' then redis.call('HSET', w.key, 'cw', reason) end
  emit(w, 'worker.cordoned', data)
end

-- Undoes the worker's drain. `data`: of the event.
local function resume(w, data)
  redis.call('HDEL', w.key, 'dr', 'ds', 'dd', 'dt', 'md')
  redis.call('ZREM', WORKERDUE, 'g:' .. w.name)
  set_status(w, 'N')
  emit(w, 'worker.resumed', data)
  update_machine(w)
end

-- Records from when until when a worker was alive, and whether it was lost then, for the uptime of its lineage. The time after
-- a planned end is no downtime.
local function note_life(w, ended, v)
  local lost = v.reason == 'HEARTBEAT_TIMEOUT' and 'l' or 'p'
  redis.call('RPUSH', w.lives, string.format('%.0f:%.0f:%s', tonumber(w.f.c or now), math.min(now, ended or now), lost))
  redis.call('LTRIM', w.lives, -MAX_LIVES, -1)
  redis.call('PEXPIRE', w.lives, string.format('%.0f', DAY_MS + v.retention))
end

-- Reports whether the worker's machine is drained or held offline: then it is kept even without workers.
local function is_closed(w)
  local m = redis.call('HMGET', w.machine, 'ds', 'ho')
  return m[1] or m[2]
end

-- Holds an OFFLINE worker: registrations of its lineage are refused until it is resumed. The hold and the worker's record,
-- which is needed to resume it, end together. `hold`: key of the lineage's hold; `reason`: from the request, or ''; `json`:
-- the same, null for none.
local function hold_offline(w, hold, reason, json)
  redis.call('HSET', w.key, 'ho', 1)
  redis.call('SET', hold, pack_hold(w.id, now, reason), 'PX', EMPTY_MS)
  redis.call('ZADD', WORKERDUE, string.format('%.0f', now + EMPTY_MS), 'x:' .. w.name)
  emit(w, 'worker.held_offline', '{"reason":' .. json .. '}')
end

-- Returns the worker whose hold covers the lineage and the reason of that, '' and the reason if the machine is held, nil if
-- neither is.
local function held_by(w, hold)
  local worker, _, reason = unpack_hold(redis.call('GET', hold))
  if worker then return worker, reason end
  local m = redis.call('HMGET', w.machine, 'ho', 'hr')
  if m[1] then return '', m[2] or '' end
end

-- Ends the worker for good. The entry of its recovery, which lists every shard, is part of the same step: the sweeper that
-- finds it fences the worker there and takes what it held. `v`: reason, loss (its tasks count as lost), shards, retention ms,
-- ended (until when it was alive, wall ms), lag (how long its end was due, ms), data (JSON members of the event, beginning
-- with a comma). Returns the machine's status if it has changed.
local function retire(w, v)
  local f = w.f
  set_status(w, 'F')
  redis.call('HSET', w.key, 'e', now, 'r', v.reason)
  if f.bl then redis.call('HSET', w.key, 'si', string.format('%.0f', shard_time(CLOCK) - f.bl)) end
  if v.lag then redis.call('HSET', w.key, 'lg', string.format('%.0f', v.lag)) end
  if v.loss then
    redis.call('HSET', w.key, 'll', 1)
    f.e = now
    redis.call('ZADD', WORKERS, 0, lost_entry(w))
  end
  redis.call('ZREM', WORKERBEATS, w.name)
  redis.call('ZREM', WORKERS, '|' .. w.name)
  redis.call('ZREM', WORKERDUE, 'g:' .. w.name)
  redis.call('ZADD', WORKERDUE, now + v.retention, 'x:' .. w.name)
  redis.call('DEL', w.reserved)
  if f.id and redis.call('GET', w.identity) == w.id then redis.call('DEL', w.identity) end
  for shard = 0, v.shards - 1 do redis.call('SADD', w.recovery, shard) end
  redis.call('ZADD', RECOVERIES, now, w.name)
  note_life(w, v.ended, v)
  emit(w, 'worker.offline', '{"reason":"' .. v.reason .. '","lastHeartbeatAtMs":' .. (f.lb or 'null')
    .. (v.data or '') .. '}')
  stop_claims(w)
  return update_machine(w, v.ended)
end

-- Removes the first entry of a sorted set that has more than `most`; it has grown by one at a time.
local function bound(key, most)
  if redis.call('ZCARD', key) > most then redis.call('ZREM', key, redis.call('ZRANGE', key, 0, 0)[1]) end
end

-- Records that a worker's lineage or a machine was declared stale; `key` has each time. After the `threshold`-th time within a
-- day it flaps, until the first of its last `threshold` times is a day ago: until then `name` is in `flapping`. Returns the
-- data of the event if it flaps, else nil.
local function note_stale(w, key, threshold, flapping, name)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - DAY_MS)
  redis.call('ZADD', key, now, string.format('%.0f', now) .. ':' .. w.id)
  bound(key, MAX_STALES)
  redis.call('PEXPIRE', key, DAY_MS)
  local times = redis.call('ZCARD', key)
  if times < threshold then return end
  redis.call('ZREMRANGEBYSCORE', flapping, '-inf', now)
  redis.call('ZADD', flapping, DAY_MS + redis.call('ZRANGE', key, -threshold, -threshold, 'WITHSCORES')[2], name)
  bound(flapping, MAX_FLAPPING)
  redis.call('PEXPIRE', flapping, DAY_MS)
  return '{"staleCount24h":' .. times .. '}'
end

-- Reports whether the mass-expiry brake has held the worker since its last heartbeat.
local function was_held_by_brake(f) return f.br and f.bl and tonumber(f.br) >= tonumber(f.bl) end

-- Where a worker's silence is counted from, in shard time: its last heartbeat, or a later response to a probe, or the time
-- that the mass-expiry brake has set, or a change of the primary.
local function silent_from(f)
  return silent_since(math.max(tonumber(f.bl), tonumber(f.px) or 0, tonumber(f.br) or 0), tonumber(f.t))
end

-- When a worker must next be checked, in shard time: when it will be late, or, if it is late already, when it will be lost.
local function next_check(f)
  return silent_from(f) + (f.la and tonumber(f.t) or math.floor(1.5 * f.i))
end
