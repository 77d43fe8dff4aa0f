-- Purpose: the two clocks. `now` is Redis's wall time; `shard_time` is the clock that decides liveness. It only
-- runs while beats can land: beat.lua alone writes it, everyone else computes what it would be now.
local MAX_STEP_MS = 250
local TIME = redis.call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)

local MAX_HOLD_MS = 2000 -- a hold that seems to last longer was set before the clock was put back

-- How far shard time runs in `gap` wall ms after m. `held` (hold.lua) says until when it stands and until when it runs
-- at half speed, since beats are being refused.
local function ran_in(gap, m, held)
  local ran = math.max(0, math.min(gap, MAX_STEP_MS))
  if not held or ran == 0 then return ran end
  local still, half = string.match(held, '^(%d+)\t(%d+)')
  local function before(hold)
    local ms = tonumber(hold) - m
    return ms > MAX_HOLD_MS and 0 or math.max(0, math.min(ms, ran))
  end
  still, half = before(still), before(half)
  return ran - still - math.ceil(math.max(0, half - still) / 2)
end

-- Returns shard time as of now and the wall ms since its last step. A shard without a clock begins at wall time.
local function shard_time(clock)
  local c = redis.call('HMGET', clock, 'L', 'm', 'h')
  local L, m = tonumber(c[1]), tonumber(c[2])
  if not L or not m then return now, 0 end
  local gap = now - m
  return L + ran_in(gap, m, c[3]), gap
end
