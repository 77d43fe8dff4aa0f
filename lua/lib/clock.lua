-- Purpose: the two clocks. `now` is Redis's wall time; `shard_time` is the clock that decides liveness. It only
-- runs while beats can land: beat.lua alone writes it, everyone else computes what it would be now.
local MAX_STEP_MS = 250
local TIME = redis.call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)

-- Returns shard time as of now and the wall ms since its last step. A shard without a clock begins at wall time.
local function shard_time(clock)
  local c = redis.call('HMGET', clock, 'L', 'm')
  local L, m = tonumber(c[1]), tonumber(c[2])
  if not L or not m then return now, 0 end
  local gap = now - m
  return L + math.max(0, math.min(gap, MAX_STEP_MS)), gap
end
