-- Purpose: revokes tokens, or restores revocations that the store has lost.
-- Guarantees: repeating it changes nothing and writes no event; of two revocations of the same tokens the later one counts.
--   There are never more than the limit; expired ones make room.
-- KEYS: 1 lubdub:{0}:revocations, 2 …:events
-- ARGV: 1 limit of revocations, 2 data of the event as JSON, '' if there already was one, then for each revocation until when
--   it applies, wall ms, and what it revokes
-- Reply: {OK}, or {REFUSED} if there would be more than the limit
-- Cost: O(log n) for each, and for each expired one
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/event.lua
--#include lib/revocations.lua
redis.call('ZREMRANGEBYSCORE', REVOCATIONS, 1, NOW)
local later, more = {}, 0
for i = 3, #ARGV, 2 do
  local till, what = tonumber(ARGV[i]), ARGV[i + 1]
  local current = tonumber(redis.call('ZSCORE', REVOCATIONS, what)) or now
  if till > current then
    if current == now then more = more + 1 end
    later[#later + 1] = ARGV[i]
    later[#later + 1] = what
  end
end
if #later == 0 then return {OK} end
if more > 0 and redis.call('ZCARD', REVOCATIONS) - 1 + more > tonumber(ARGV[1]) then return {REFUSED} end
redis.call('ZADD', REVOCATIONS, unpack(later))
set_version(math.max(now, version() + 1))
if ARGV[2] ~= '' then write_event(KEYS[2], 'system.tokens_revoked', {}, ARGV[2]) end
return {OK}
