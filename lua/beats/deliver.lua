-- Purpose: records that a response has delivered a cancel to its worker, which starts the grace period.
-- Guarantees: only the first delivery counts; nothing is written if no cancel is pending.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:cancels, 3 …:timers
-- ARGV: 1 member
-- Reply: 1 if the grace period begins, else 0
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/cancel.lua
local grace, delivered, reason = unpack_cancel(redis.call('HGET', KEYS[2], ARGV[1]))
if not grace or delivered ~= '' then return 0 end
local L = shard_time(KEYS[1])
redis.call('HSET', KEYS[2], ARGV[1], pack_cancel(grace, string.format('%.0f', L), reason))
redis.call('ZADD', KEYS[3], L + grace, 'c:' .. ARGV[1])
return 1
