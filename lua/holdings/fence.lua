-- Purpose: permanently bars a worker from claiming in one shard, and lists what it still holds there.
-- Guarantees: a later claim finds the fence (claim.lua), so the listed attempts can only become fewer; an attempt that is
--   adopted later ends like the listed ones (lib/attempt.lua); repeating it is harmless. Fences older than any claim that
--   could still be in progress are dropped, 100 a call.
-- KEYS: 1 lubdub:{shard}:fences, 2 …:held
-- ARGV: 1 worker, 2 life of a fence ms, 3 limit, 4 1 if what it held counts as lost, else '', 5 why the worker ended or ''
-- Reply: entries of held (lib/held.lua)
-- Cost: O(log n + limit)
--#include lib/clock.lua
redis.call('ZREM', KEYS[2], '~' .. ARGV[1]) -- first: above maxmemory Redis refuses a script that does not free first
local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2], 'LIMIT', 0, 100)
if #over > 0 then redis.call('ZREM', KEYS[1], unpack(over)) end
redis.call('ZADD', KEYS[1], now, ARGV[1])
if ARGV[4] == '' then redis.call('ZADD', KEYS[1], now, ARGV[1] .. '/free') end
if ARGV[5] ~= '' then redis.call('ZADD', KEYS[1], now, ARGV[1] .. '/' .. ARGV[5]) end
return redis.call('ZRANGEBYLEX', KEYS[2], '[' .. ARGV[1] .. '/', '(' .. ARGV[1] .. '0', 'LIMIT', 0, ARGV[3])
