-- Purpose: decides that a fire gets a task, for schedules that skip overlaps: another sweeper that has read an older state
--   cannot skip it any more.
-- Guarantees: a repeat changes nothing; a fire that was handled is left unchanged.
-- KEYS: 1 lubdub:{shard}:schedule:<scope>/<id>, 2 …:pending:<scope>/<id>
-- ARGV: 1 fire as it waits, 2 its wall ms in 13 digits, 3 task of the previous fire as it was read, or ''
-- Reply: {OK}, or {MISMATCH} if the fire does not wait any more, or another came in between
-- Cost: O(log n)
--#include lib/codes.lua
local fire, ms, before = unpack(ARGV, 1, 3)
local of = redis.call('HMGET', KEYS[1], 'tk', 'dc')
if not redis.call('ZSCORE', KEYS[2], fire) or (of[1] or '') ~= before then return {MISMATCH} end
if of[2] and of[2] ~= ms and redis.call('ZSCORE', KEYS[2], of[2] .. '/s') then return {MISMATCH} end
redis.call('HSET', KEYS[1], 'dc', ms)
return {OK}
