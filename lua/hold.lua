-- Purpose: holds shard time back for a moment, since beats of the shard are being refused: by Redis, then it stands; by
--   a front end that is full, then it runs at half speed.
-- Guarantees: what has passed counts as it did; repeating it is harmless; the moment ends by itself.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:outages
-- ARGV: 1 ms for which it stands from now on, or 0, 2 ms for which it runs at half speed, or 0
-- Reply: shard time ms
-- Cost: O(1)
--#include lib/clock.lua
--#include lib/step.lua
local L = step(KEYS[1], KEYS[2], 1)
local still, half, open = string.match(redis.call('HGET', KEYS[1], 'h') or '', '^(%d+)\t(%d+)\t(.*)$')
local function later(hold, ms)
  hold = tonumber(hold) or 0
  if hold - now > MAX_HOLD_MS then hold = 0 end
  return string.format('%.0f', ms == '0' and hold or math.max(hold, now + ms))
end
redis.call('HSET', KEYS[1], 'L', L, 'm', now, 'h',
  later(still, ARGV[1]) .. '\t' .. later(half, ARGV[2]) .. '\t' .. (open or ''))
return L
