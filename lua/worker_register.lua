-- Purpose: registers a worker, which counts as its first beat, and ends the registration that it supersedes.
-- Guarantees: one registration an identity (scope, queue, machine, hostname, pid); the old one is OFFLINE and its
--   recovery entered in the same step; the machine's status follows in the same step; the same registration again
--   changes nothing.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:outages, 3 …:events, 4 …:workers, 5 …:workerbeats, 6 …:workerdue, 7 …:recoveries,
--   8 …:worker:<scope>/<id>, 9 …:machine:<scope>/<machine>, 10 …:machineworkers:<scope>/<machine>,
--   11 …:machineperiods:<scope>/<machine>, 12 …:stales:<scope>/<lineage>, 13 …:stales:<scope>/m:<machine>,
--   14 …:recovery:<scope>/<id>, 15 …:identity:<scope>/<identity>, 16 …:reserved:<scope>/<id>, then the same nine of the
--   worker that it supersedes, or none
-- ARGV: 1 scope, 2 id, 3 worker that it supersedes, or '', 4 shards, 5 retention ms, then the record's fields as name
--   and value (m, i and t among them; id only when it has an identity)
-- Reply: {OK, wall ms} or {MISMATCH, wall ms, worker that has the identity}
-- Cost: O(log n + shards), at most five events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/worker.lua
local w = open_worker(8, ARGV[1], ARGV[2])
if w.f then return {OK, tonumber(w.f.c)} end
local f = {}
for i = 6, #ARGV, 2 do f[ARGV[i]] = ARGV[i + 1] end
local holder = f.id and redis.call('GET', w.identity) or nil
if (holder or '') ~= ARGV[3] then return {MISMATCH, now, holder or ''} end
local L = shard_time(CLOCK)
redis.call('HSET', w.key, 'c', now, 'bl', L, 'lb', now, unpack(ARGV, 6))
f.c, f.bl, f.lb = now, L, now
w.f = f
set_status(w, 'N')
redis.call('ZADD', WORKERBEATS, look_at(f), w.name)
if f.id then redis.call('SET', w.identity, w.id) end
tell('worker.registered', w.scope, w.id, '{"queue":"' .. f.q .. '","machineId":"' .. f.m .. '"}')
if ARGV[3] ~= '' then
  local old = open_worker(8 + KEYS_PER_WORKER, ARGV[1], ARGV[3])
  if old.f and old.f.s ~= 'F' then
    retire(old, {reason = 'SUPERSEDED', loss = true, shards = tonumber(ARGV[4]), retention = tonumber(ARGV[5]),
      data = ',"supersededBy":"' .. w.id .. '"'})
  end
end
follow(w)
return {OK, now}
