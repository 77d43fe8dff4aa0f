-- Purpose: marks a shard as done in a worker's recovery, and ends the recovery with the last one.
-- Guarantees: a shard is marked once; the end is one event.
-- KEYS: 1 lubdub:{shard}:events, 2 …:recoveries, 3 …:recovery:<scope>/<id>, 4 …:worker:<scope>/<id>
-- ARGV: 1 scope, 2 id, 3 the shard, 4 attempts taken there, 5 how many of these failed for good, 6 how many of those because
--   their retries are used up
-- Reply: {1 if the recovery is over, else 0; then: attempts taken in all shards, how many of these failed, ms since the
--   worker's end, or ''}
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/event.lua
local name = ARGV[1] .. '/' .. ARGV[2]
if redis.call('SREM', KEYS[3], ARGV[3]) == 0 then return {0} end
local taken, failed = tonumber(ARGV[4]), tonumber(ARGV[5])
local f = redis.call('HMGET', KEYS[4], 'm', 'q', 'e')
if f[1] then
  taken = redis.call('HINCRBY', KEYS[4], 'rt', taken)
  if failed > 0 then redis.call('HINCRBY', KEYS[4], 'rf', failed) end
  if tonumber(ARGV[6]) > 0 then redis.call('HINCRBY', KEYS[4], 'rx', ARGV[6]) end
  failed = tonumber(redis.call('HGET', KEYS[4], 'rf') or 0)
end
if redis.call('EXISTS', KEYS[3]) == 1 then return {0} end
redis.call('ZREM', KEYS[2], name)
for _, kind in ipairs({'worker.tasks_recovered', 'worker.recovered'}) do -- the second is its name before 0.2, for one more release
  write_event(KEYS[1], kind, {scope = ARGV[1], subject = ARGV[2], queue = f[2], worker = ARGV[2], machine = f[1]},
    '{"attempts":' .. taken .. '}')
end
return {1, taken, failed, f[3] and math.max(0, now - f[3]) or ''}
