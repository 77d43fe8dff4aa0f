-- Purpose: the one writer of shard time; heartbeats, empty beats and slowclock.lua call it before they write anything. Needs
--   clock.
--#include lib/outage.lua
local WRITE_AFTER_MS = 50
local LONGEST_MS = 60000 -- of one entry about slowed time

-- Records that shard time ran `ran` ms of the last `gap`: evidence, on which no decision depends. An entry is about one speed,
-- so that a part of it can be computed: 1 paused, 2 a tenth, 3 half speed, since heartbeats were refused; 5 paused since none
-- could be stored. For 4, full speed, there is no entry. Slowed time loses a little in each step; that is one entry, which
-- stays open until the slowdown is over. o counts the entries to report.
local function record(clock, outages, L, m, gap, ran, slowed)
  local until_still, until_half, until_slow, open = unpack_slowed(slowed)
  local moved = math.min(gap, MAX_STEP_MS)
  local still, slow, half = 0, 0, 0
  if slowed then still, slow, half = slowed_in(moved, m, slowed) end
  local full = moved - still - slow - half
  local at_tenth, at_half = slow_run(m, still, slow, half)
  local lasted, passed = {still, slow, half, full, gap - moved}, {0, at_tenth, at_half, full, 0}
  if gap > moved then -- time was paused before its last ms, so that heartbeats stored now are known to be later
    local last = full > 0 and 4 or passed[3] > 0 and 3 or passed[2] > 0 and 2
    if last then lasted[last], passed[last] = lasted[last] - 1, passed[last] - 1 end
  end

  open = tonumber(open)
  local at, wall, since, to_report = L - ran, m, nil, 0
  for speed = 1, 5 do
    if lasted[speed] > 0 then
      at = at + passed[speed]
      local lost, all = lasted[speed] - passed[speed], passed[speed]
      local from
      if open == speed then
        local _, began, was_lost, was_all = unpack_outage(redis.call('LINDEX', outages, 0))
        from = began -- nil: the store lost the entry
        if from then lost, all = lost + was_lost, all + was_all end
      elseif open then
        to_report = to_report + 1
      end
      since = tonumber(from) or speed == 5 and m or wall
      local entry = pack_outage(at, since, lost, all)
      if from then
        redis.call('LSET', outages, 0, entry)
      elseif lost > 0 then
        redis.call('LPUSH', outages, entry)
        redis.call('LTRIM', outages, 0, 999)
      end
      open = lost > 0 and speed or nil
      wall = wall + lasted[speed]
    end
  end

  local function lasts(till) return till and tonumber(till) > now and till - now <= MAX_SLOW_MS end
  local speed = lasts(until_still) and 1 or lasts(until_slow) and 2 or lasts(until_half) and 3
  if open and (open ~= speed or now - since >= LONGEST_MS) then
    to_report, open = to_report + 1, nil
  end
  if to_report > 0 then redis.call('HINCRBY', clock, 'o', to_report) end
  if speed then
    redis.call('HSET', clock, 'h', pack_slowed(until_still, until_half, until_slow, open))
  elseif slowed then
    redis.call('HDEL', clock, 'h')
  end
end

-- Advances shard time and returns it with the wall ms since it was last written. A clock written less than 50 ms ago is not
-- written: every script computes the same time from it, and a write for every batch would cost each of its heartbeats.
-- `write_after` is for callers that must write it sooner. If the clock did not exist, the gap is -1.
local function step(clock, outages, write_after)
  local c = redis.call('HMGET', clock, 'L', 'm', 'h')
  local L, m = tonumber(c[1]), tonumber(c[2])
  local gap = m and L and now - m or -1
  local writes = gap < 0 or gap >= (write_after or WRITE_AFTER_MS)
  if not L or not m then
    L = now
  elseif gap > 0 then
    local ran = ran_in(gap, m, c[3])
    L = L + ran
    if writes and (ran < gap or c[3]) then record(clock, outages, L, m, gap, ran, c[3]) end
  end
  if writes then redis.call('HSET', clock, 'L', L, 'm', now) end
  return L, gap
end
