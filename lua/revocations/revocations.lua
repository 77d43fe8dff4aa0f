-- Purpose: lists the revoked tokens for a client that does not have the current list.
-- Guarantees: changes nothing, except that it creates the list if there is none, so that its key always exists.
-- KEYS: 1 lubdub:{0}:revocations
-- ARGV: 1 version that the client has, '' for none, 2 revocations to skip, 3 limit of listed revocations
-- Reply: wall ms, version, {for each revocation what it revokes and until when it applies, wall ms}; none if the client has
--   the current version
-- Cost: O(log n + those skipped and listed)
--#include lib/clock.lua
--#include lib/revocations.lua
local is = string.format('%.0f', version())
if is == ARGV[1] then return {now, is, {}} end
local over = '(' .. string.format('%.0f', now)
return {now, is, redis.call('ZRANGEBYSCORE', REVOCATIONS, over, '+inf', 'WITHSCORES', 'LIMIT', ARGV[2], ARGV[3])}
