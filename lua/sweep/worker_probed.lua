-- Purpose: records that a late worker has responded to its probe: it is not dead yet.
-- Guarantees: a worker that has sent a heartbeat since, or that is OFFLINE, is left unchanged.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), 8–17 the worker's, as worker_register.lua has them
-- ARGV: 1 scope, 2 id
-- Reply: 1 if it was recorded, else 0
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/worker.lua
local w = open_worker(8, ARGV[1], ARGV[2])
local f = w.f
if not f or f.s == 'F' or not f.la then return 0 end
f.px, f.la = shard_time(CLOCK), nil
redis.call('HSET', w.key, 'px', f.px, 'pb', (tonumber(f.pb) or 0) + 1)
redis.call('HDEL', w.key, 'la')
redis.call('ZADD', WORKERBEATS, next_check(f), w.name)
return 1
