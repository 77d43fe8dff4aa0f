-- Purpose: lists the tokens that were taken back to whoever does not know the list as it is now.
-- Guarantees: it changes nothing but that it makes the list where there is none, so that its key is always there.
-- KEYS: 1 lubdub:{0}:revocations
-- ARGV: 1 version that is known, '' for none, 2 revocations to skip, 3 limit of those that are listed
-- Reply: wall ms, version, {of each revocation what it takes back and until when it stands, wall ms}; none where the version
--   is the one that is known
-- Cost: O(log n + those skipped and listed)
--#include lib/clock.lua
--#include lib/revocations.lua
local is = string.format('%.0f', version())
if is == ARGV[1] then return {now, is, {}} end
local over = '(' .. string.format('%.0f', now)
return {now, is, redis.call('ZRANGEBYSCORE', REVOCATIONS, over, '+inf', 'WITHSCORES', 'LIMIT', ARGV[2], ARGV[3])}
