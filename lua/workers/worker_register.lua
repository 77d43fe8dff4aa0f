-- Purpose: registers a worker, which counts as its first heartbeat, and ends the registration that it supersedes.
-- Guarantees: one registration for an identity (scope, queue, machine, name, hostname, pid); the old one is OFFLINE and its
--   recovery entered in the same step; the machine's status follows in the same step; a repeat of the same registration
--   changes nothing, whatever the state of the worker. A superseded worker passes its cordon on. Three supersessions of one
--   identity within ten minutes or ten intervals are reported, once in that time. On a drained machine it waits, DRAINING. A
--   worker whose lineage or machine is held offline is refused.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:outages, 3 …:events, 4 …:workers, 5 …:workerbeats, 6 …:workerdue, 7 …:recoveries,
--   8 …:worker:<scope>/<id>, 9 …:machine:<scope>/<machine>, 10 …:machineworkers:<scope>/<machine>,
--   11 …:machineperiods:<scope>/<machine>, 12 …:stales:<scope>/<lineage>, 13 …:stales:<scope>/m:<machine>,
--   14 …:recovery:<scope>/<id>, 15 …:identity:<scope>/<identity>, 16 …:reserved:<scope>/<id>,
--   17 …:lives:<scope>/<lineage>, 18 …:hold:<scope>/<lineage>, then 8–17 of the worker that it supersedes, or none
-- ARGV: 1 scope, 2 id, 3 worker that it supersedes, or '', 4 shards, 5 retention ms, 6 until when it may take place, wall ms,
--   or '', then the record's fields as name and value (m, i and t among them; id only if it has an identity)
-- Reply: {OK, wall ms of the registration, worker that it superseded or '', 1 if a conflict is reported, else '', its status}
--   or {MISMATCH, wall ms, worker that has the identity} or {NOT_FOUND, wall ms}: it comes too late, or {OFFLINE, wall ms,
--   worker whose hold refuses it or '' for its machine's, reason of that or ''}
-- Cost: O(log n + shards), at most eight events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/workercodes.lua
--#include lib/worker.lua
local CONFLICT = 3            -- supersessions of one identity that are reported
local CONFLICT_MS = 600000    -- within this time, or within this many intervals
local CONFLICT_INTERVALS = 10

-- Records that a worker has superseded another one, and reports processes that keep doing that to each other. The record
-- passes from worker to worker: sx when the last ones did, wall ms, st when that was reported.
local function note_conflict(w, old)
  local window = math.max(CONFLICT_MS, CONFLICT_INTERVALS * w.f.i)
  local recent = {string.format('%.0f', now)}
  for at in string.gmatch(old.f.sx or '', '%d+') do
    if #recent < CONFLICT and now - at <= window then recent[#recent + 1] = at end
  end
  redis.call('HSET', w.key, 'sx', table.concat(recent, ','))
  local reported_at = tonumber(old.f.st)
  if reported_at and now - reported_at <= window then
    redis.call('HSET', w.key, 'st', old.f.st)
    return ''
  end
  if #recent < CONFLICT then return '' end
  redis.call('HSET', w.key, 'st', recent[1])
  emit(w, 'worker.identity_conflict', '{"superseded":"' .. old.id .. '","times":' .. #recent .. ',"withinMs":'
    .. string.format('%.0f', now - recent[#recent])
    .. ',"remedy":"give each process a unique name, machineId or hostname"}')
  return '1'
end

local w = open_worker(8, ARGV[1], ARGV[2])
if w.f then return {OK, tonumber(w.f.c), w.f.sp or '', '', w.f.s} end
if ARGV[6] ~= '' and now > tonumber(ARGV[6]) then return {NOT_FOUND, now} end
local held, reason = held_by(w, KEYS[18])
if held then return {OFFLINE, now, held, reason} end
local f = {}
for i = 7, #ARGV, 2 do f[ARGV[i]] = ARGV[i + 1] end
local holder = f.id and redis.call('GET', w.identity) or nil
if (holder or '') ~= ARGV[3] then return {MISMATCH, now, holder or ''} end
local L = shard_time(CLOCK)
redis.call('HSET', w.key, 'c', now, 'bl', L, 'lb', now, unpack(ARGV, 7))
f.c, f.bl, f.lb = now, L, now
w.f = f
redis.call('ZADD', WORKERBEATS, next_check(f), w.name)
if f.id then redis.call('SET', w.identity, w.id) end
emit(w, 'worker.registered')
enter(w)
local superseded, conflict = '', ''
if ARGV[3] ~= '' then
  local old = open_worker(9 + KEYS_PER_WORKER, ARGV[1], ARGV[3])
  if old.f and old.f.s ~= 'F' then
    superseded = old.id
    redis.call('HSET', w.key, 'sp', superseded)
    if old.f.co then -- an operator's decision about this process, which only an operator undoes
      local reason = old.f.cw or 'null'
      cordon(w, reason, '{"reason":' .. reason .. ',"inheritedFrom":"' .. superseded .. '"}')
    end
    retire(old, {reason = 'SUPERSEDED', loss = true, shards = tonumber(ARGV[4]), retention = tonumber(ARGV[5]),
      data = ',"supersededBy":"' .. w.id .. '"'})
    conflict = note_conflict(w, old)
  end
end
update_machine(w)
return {OK, now, superseded, conflict, w.f.s}
