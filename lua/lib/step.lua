-- Purpose: the one writer of shard time; beats and empty beats call it before they write anything else. Needs clock.

-- Moves shard time on and returns it with the wall ms since it was last written. A clock written less than 50 ms
-- ago is left as it is: everyone computes the same time from it, and a write for every batch would cost each of its
-- beats. A gap that shard time could not follow is recorded, as evidence only.
local WRITE_AFTER_MS = 50
local function step(clock, outages)
  local c = redis.call('HMGET', clock, 'L', 'm')
  local L, m = tonumber(c[1]), tonumber(c[2])
  local gap = m and L and now - m or WRITE_AFTER_MS
  if not L or not m then
    L = now
  elseif gap > MAX_STEP_MS then
    redis.call('LPUSH', outages, string.format('%.0f\t%.0f\t%.0f', L + MAX_STEP_MS, m, gap - MAX_STEP_MS))
    redis.call('LTRIM', outages, 0, 999)
    L = L + MAX_STEP_MS
  elseif gap > 0 then
    L = L + gap
  end
  if gap < 0 or gap >= WRITE_AFTER_MS then redis.call('HSET', clock, 'L', L, 'm', now) end
  return L, gap
end
