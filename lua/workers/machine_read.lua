-- Purpose: reads one machine at one moment.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:machine:<scope>/<machine>, 2 …:machineworkers:<scope>/<machine>,
--   3 …:machineperiods:<scope>/<machine>, 4 …:stales:<scope>/m:<machine>
-- ARGV: 1 limit of workers to name
-- Reply: {wall ms, status letter or '', first seen wall ms, online since wall ms or '', {online periods as begin:end}, how
--   often it was declared stale within a day, {ONLINE, DRAINING, OFFLINE workers}, {names of those that registered last, of
--   the first of these statuses that it has}}
-- Cost: O(log n + limit + periods)
--#include lib/clock.lua
local counts, names = {}, {}
for i, status in ipairs({'N', 'D', 'F'}) do
  local to = '(' .. status .. '0'
  counts[i] = redis.call('ZLEXCOUNT', KEYS[2], '(' .. status .. '/', to)
  if counts[i] > 0 and #names == 0 then
    local last = redis.call('ZLEXCOUNT', KEYS[2], '-', to) - 1 -- in the order of names, which is that of registration
    names = redis.call('ZRANGE', KEYS[2], last - math.min(counts[i], tonumber(ARGV[1])) + 1, last)
  end
end
local f = redis.call('HMGET', KEYS[1], 's', 'c', 'on', 'ds', 'dd', 'dr', 'ho', 'hr')
return {now, f[1] or '', f[2] or '', f[3] or '', redis.call('LRANGE', KEYS[3], 0, -1),
  redis.call('ZCOUNT', KEYS[4], now - 86400000, '+inf'), counts, names,
  f[4] or '', f[5] or '', f[6] or '', f[7] or '', f[8] or ''}
