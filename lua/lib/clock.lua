-- Purpose: the two clocks. `now` is Redis's wall time; `shard_time` is the clock for timeouts. It runs only while heartbeats
--   can be stored: lib/step.lua writes it, and every other script computes its current value.
local MAX_STEP_MS = 250
local TIME = redis.call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)

local MAX_SLOW_MS = 2000 -- a longer slowdown was set before the clock was set back

-- Until when time is slowed, as the clock has it in h: until when it is paused, until when it runs at half speed, until when
-- at a tenth, wall ms, and with which of these speeds the latest outage continues (lib/step.lua) or '', TAB-separated.
local function pack_slowed(still, half, slow, open) return still .. '\t' .. half .. '\t' .. slow .. '\t' .. (open or '') end

-- Returns its parts as strings; nothing if time is not slowed.
local function unpack_slowed(slowed) return string.match(slowed or '', '^(%d+)\t(%d+)\t(%d+)\t(.*)$') end

-- How many of the first `moved` wall ms after m are slowed: how long time is paused, then how long it runs at a tenth, then at
-- half speed. `slowed` has the end of each: the slowest applies.
local function slowed_in(moved, m, slowed)
  local still, half, slow = unpack_slowed(slowed)
  local function before(till)
    local ms = (tonumber(till) or 0) - m
    return ms > MAX_SLOW_MS and 0 or math.max(0, math.min(ms, moved))
  end
  still, half, slow = before(still), before(half), before(slow)
  slow = math.max(0, slow - still)
  return still, slow, math.max(0, half - still - slow)
end

-- How far shard time runs in `ms` wall ms after `from` when it runs one ms in `of`. It advances when the wall clock is a
-- multiple of that, so that many short steps add up to one long one.
local function one_in(of, from, ms) return math.floor((from + ms) / of) - math.floor(from / of) end

-- How far it runs at a tenth, and then at half speed.
local function slow_run(m, still, slow, half)
  return one_in(10, m + still, slow), one_in(2, m + still + slow, half)
end

-- How far shard time runs in `gap` wall ms after m. After a gap without heartbeats it advances by at least one ms, which
-- separates heartbeats before the gap from those after it.
local function ran_in(gap, m, slowed)
  local moved = math.max(0, math.min(gap, MAX_STEP_MS))
  if not slowed or moved == 0 then return moved end
  local still, slow, half = slowed_in(moved, m, slowed)
  local at_tenth, at_half = slow_run(m, still, slow, half)
  return math.max(gap > moved and 1 or 0, moved - still - slow - half + at_tenth + at_half)
end

-- What has been lost since the last step, as shard_time found it: entries for outages, oldest first, as {shard time at the
-- end, ms that were lost, ms that were not}. nil: nothing.
local unfolding

-- Returns the current shard time and the wall ms since its last step. A shard without a clock begins at wall time.
local function shard_time(clock)
  local c = redis.call('HMGET', clock, 'L', 'm', 'h')
  local L, m = tonumber(c[1]), tonumber(c[2])
  if not L or not m then return now, 0 end
  local gap = now - m
  local ran = ran_in(gap, m, c[3])
  L = L + ran
  if gap > ran and gap > 0 then
    local moved = math.min(gap, MAX_STEP_MS)
    local last = gap > moved and 1 or 0 -- see lib/step.lua
    unfolding = {{L - last, moved - ran, ran - last}, {L - last, gap - moved, 0}}
  end
  return L, gap
end
