-- Purpose: adopts a worker whose record the store has lost, from the content of its token: a verified token proves that it was
--   registered.
-- Guarantees: a worker with a record is left unchanged; adoption counts as a heartbeat; if its identity has been registered
--   again meanwhile, the worker is superseded in the same step, and its recovery entered; likewise it is OFFLINE if its
--   lineage or machine is held.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), 8–17 the worker's, as worker_register.lua has them,
--   18 lubdub:{shard}:hold:<scope>/<lineage>
-- ARGV: 1 scope, 2 id, 3 shards, 4 retention ms, then the record's fields as name and value, c among them
-- Reply: {OK, wall ms}
-- Cost: O(log n + shards), at most six events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/worker.lua
local w = open_worker(8, ARGV[1], ARGV[2])
if w.f then return {OK, now} end
local f = {}
for i = 5, #ARGV, 2 do f[ARGV[i]] = ARGV[i + 1] end
local L = shard_time(CLOCK)
-- How many it holds is not known: at most its maximum, so that its next claim counts them.
redis.call('HSET', w.key, 'bl', L, 'lb', now, 'hb', f.mc, unpack(ARGV, 5))
f.bl, f.lb = L, now
w.f = f
redis.call('ZADD', WORKERBEATS, next_check(f), w.name)
emit(w, 'system.adopted')
enter(w)
update_machine(w)
if held_by(w, KEYS[18]) then
  retire(w, {reason = 'FORCED_OFFLINE', loss = true, shards = tonumber(ARGV[3]), retention = tonumber(ARGV[4])})
  return {OK, now}
end
local holder = f.id and redis.call('GET', w.identity)
if holder and holder ~= w.id then
  retire(w, {reason = 'SUPERSEDED', loss = true, shards = tonumber(ARGV[3]), retention = tonumber(ARGV[4]),
    data = ',"supersededBy":"' .. holder .. '"'})
elseif f.id then
  redis.call('SET', w.identity, w.id)
end
return {OK, now}
