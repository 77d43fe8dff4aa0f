-- Purpose: the two clocks. `now` is Redis's wall time; `shard_time` is the clock that decides liveness. It only
-- runs while beats can land: beat.lua alone writes it, everyone else computes what it would be now.
local MAX_STEP_MS = 250
local TIME = redis.call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)

local MAX_HOLD_MS = 2000 -- a hold that seems to last longer was set before the clock was put back

-- How far shard time runs in `gap` wall ms after m. `held` (lib/hold.lua) says until when it stands, until when it runs
-- at half speed, and until when at a tenth: the slowest of those that are not over.
local function ran_in(gap, m, held)
  local ran = math.max(0, math.min(gap, MAX_STEP_MS))
  if not held or ran == 0 then return ran end
  local still, half, slow = string.match(held, '^(%d+)\t(%d+)\t(%d+)\t')
  local function before(hold)
    local ms = (tonumber(hold) or 0) - m
    return ms > MAX_HOLD_MS and 0 or math.max(0, math.min(ms, ran))
  end
  still, half, slow = before(still), before(half), before(slow)
  slow = math.max(0, slow - still)
  half = math.max(0, half - still - slow)
  return ran - still - math.ceil(0.9 * slow) - math.ceil(half / 2)
end

-- Returns shard time as of now and the wall ms since its last step. A shard without a clock begins at wall time.
local function shard_time(clock)
  local c = redis.call('HMGET', clock, 'L', 'm', 'h')
  local L, m = tonumber(c[1]), tonumber(c[2])
  if not L or not m then return now, 0 end
  local gap = now - m
  return L + ran_in(gap, m, c[3]), gap
end
