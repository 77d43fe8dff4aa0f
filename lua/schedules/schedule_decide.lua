-- Purpose: settles that a fire gets a task, where tasks of one schedule must not run beside each other: another sweeper that
--   saw an older state of things skips it no more.
-- Guarantees: a repeat changes nothing; a fire that was dealt with is left alone.
-- KEYS: 1 lubdub:{shard}:schedule:<scope>/<id>, 2 …:pending:<scope>/<id>
-- ARGV: 1 fire as it waits, 2 its wall ms in 13 digits, 3 task of the fire before as it was read, or ''
-- Reply: {OK} or {MISMATCH} when the fire waits no more, or another has come in between
-- Cost: O(log n)
--#include lib/codes.lua
local fire, ms, before = unpack(ARGV, 1, 3)
local of = redis.call('HMGET', KEYS[1], 'tk', 'dc')
if not redis.call('ZSCORE', KEYS[2], fire) or (of[1] or '') ~= before then return {MISMATCH} end
if of[2] and of[2] ~= ms and redis.call('ZSCORE', KEYS[2], of[2] .. '/s') then return {MISMATCH} end
redis.call('HSET', KEYS[1], 'dc', ms)
return {OK}
