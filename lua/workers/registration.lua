-- Purpose: stores which worker the key of a registration identifies, before the worker is registered.
-- Guarantees: the first reservation counts until it expires, with all that the server chose then; another body is recognized.
-- KEYS: 1 lubdub:{shard}:registration:<scope>/<key>
-- ARGV: 1 hash of the body, 2 worker, 3 interval ms, 4 the same again, for the previous release, 5 timeout ms, 6 life ms (0:
--   reserve nothing)
-- Reply: {1 if the body is the same, else 0, worker, interval, interval again, timeout, until when the worker may be
--   registered under the key, wall ms}; no worker if the key is not known and none was reserved
-- Cost: O(1)
--#include lib/clock.lua
local r = redis.call('HMGET', KEYS[1], 'h', 'w', 'i', 'j', 't', 'u')
if not r[1] and ARGV[6] == '0' then return {1, '', '', '', '', ''} end
if not r[1] then
  local expires = string.format('%.0f', now + ARGV[6])
  r = {ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], expires}
  redis.call('HSET', KEYS[1], 'h', r[1], 'w', r[2], 'i', r[3], 'j', r[4], 't', r[5], 'u', r[6])
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end
return {r[1] == ARGV[1] and 1 or 0, r[2], r[3], r[4], r[5], r[6]}
