-- Purpose: lists what is overdue in one sorted set, oldest first.
-- Guarantees: writes nothing; bounded by the limit. What it lists must be taken by a script that checks again.
-- KEYS: 1 lubdub:{shard}:clock, 2 the sorted set: …:beats:<timeoutMs>, …:timers or …:due
-- ARGV: 1 clock of the scores (L or wall), 2 timeout ms to add to each score, 3 how long overdue at least, ms, 4 limit, 5 how
--   many to skip, of those that are overdue longest; none: 0
-- Reply: {wall ms, shard time ms, {members}}
-- Cost: O(log n + skipped + limit)
--#include lib/clock.lua
--#include lib/primary.lua
local L = shard_time(KEYS[1])
local at = ARGV[1] == 'L' and L or now
local timeout, grace = tonumber(ARGV[2]), tonumber(ARGV[3])
local last = at - timeout - grace
if timeout > 0 then -- heartbeats: see silent_since
  read_change(KEYS[1])
  if changed > last then last = last - timeout - MAX_STEP_MS end
end
last = string.format('%.0f', last)
return {now, L, redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', last, 'LIMIT', ARGV[5] or 0, ARGV[4])}
