-- Purpose: reads one machine at one moment.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:machine:<scope>/<machine>, 2 …:machineworkers:<scope>/<machine>,
--   3 …:machineperiods:<scope>/<machine>, 4 …:stales:<scope>/m:<machine>
-- ARGV: none
-- Reply: {wall ms, status letter or '', first seen wall ms, online since wall ms or '', {online periods as begin:end},
--   times a worker went stale within a day, {<status letter>/<worker>}}
-- Cost: O(its workers and periods)
--#include lib/clock.lua
local f = redis.call('HMGET', KEYS[1], 's', 'c', 'on')
return {now, f[1] or '', f[2] or '', f[3] or '', redis.call('LRANGE', KEYS[3], 0, -1),
  redis.call('ZCOUNT', KEYS[4], now - 86400000, '+inf'), redis.call('ZRANGE', KEYS[2], 0, -1)}
