-- Purpose: stores a batch of heartbeats, in groups that share a shard and a heartbeat timeout.
-- Guarantees: only members of the beats sets are touched: membership is the attempt guard, so a superseded, failed or finished
--   attempt is named in the reply and not written. Scores never fall. Repeating it is harmless. The time of a shard moves by
--   at most 250 ms a call, before anything else of the shard is written.
-- KEYS: for each group lubdub:{shard}:clock, …:outages, …:progress, …:cancels, …:beats:<timeoutMs>; groups of one shard are
--   adjacent. On Cluster a call covers one shard only.
-- ARGV: for each group one number: its beats with a full report + 1,024 × those with a partial one + 1,048,576 × those with
--   none, and 1,073,741,824 more in every group to request the silences; then group by group member and packed report of each
--   full one, the same of each partial one, and the members of those with none
-- Reply: {wall ms, {positions of beats whose member is not live}, {position, cancel, …} of beats with a cancel pending, {first
--   position, gap ms, …} of shards whose time could not follow the wall clock, and on request {ms of shard time that each was
--   silent, -1 if it is not live}}; positions count from 1 through all groups
-- Cost: for each beat O(log n) and one hash field; for each group one ZADD and one HSET, at most one ZMSCORE more and another
--   one to read silences, and one HMGET while cancels are pending in the shard
--#include lib/clock.lua
--#include lib/step.lua
--#include lib/report.lua
local dead, cancels, gaps, silences = {}, {}, {}, nil
local args, members = {}, {} -- reused from group to group; what follows a group's end belongs to an earlier one
local groups = #KEYS / 5
local at, before = groups + 1, 0
local clock, score, pending, of
for g = 0, groups - 1 do
  local k, n = 5 * g, ARGV[g + 1]
  local full = n % 1024
  n = (n - full) / 1024
  local partial = n % 1024
  local bare = (n - partial) / 1024
  if bare >= 1024 then bare, silences = bare - 1024, silences or {} end
  local size, reports = full + partial + bare, at + 2 * (full + partial)
  if KEYS[k + 1] ~= clock then
    clock = KEYS[k + 1]
    local L, gap = step(clock, KEYS[k + 2])
    if L ~= of then score, of = string.format('%.0f', L), L end -- shards that were never paused have one time
    pending = redis.call('HLEN', KEYS[k + 4]) > 1
    if gap > MAX_STEP_MS then
      gaps[#gaps + 1] = before + 1
      gaps[#gaps + 1] = gap
    end
  end

  local i = 0
  for j = at, reports - 1, 2 do
    args[i + 1], args[i + 2] = score, ARGV[j]
    i = i + 2
  end
  for j = reports, reports + bare - 1 do
    args[i + 1], args[i + 2] = score, ARGV[j]
    i = i + 2
  end
  if silences then
    for j = 1, size do members[j] = args[2 * j] end
    local last_beats = redis.call('ZMSCORE', KEYS[k + 5], unpack(members, 1, size))
    for j = 1, size do silences[before + j] = last_beats[j] and of - last_beats[j] or -1 end
  end
  local live = redis.call('ZADD', KEYS[k + 5], 'XX', 'GT', 'CH', unpack(args, 1, i)) == size
  local gone
  if pending or not live then
    for j = 1, size do members[j] = args[2 * j] end
  end
  if not live then -- not in the set, or already beaten in this millisecond
    local scores = redis.call('ZMSCORE', KEYS[k + 5], unpack(members, 1, size))
    for j = 1, size do
      if not scores[j] then
        gone = gone or {}
        gone[members[j]] = true
        dead[#dead + 1] = before + j
      end
    end
  end

  if full > 0 and not gone then
    redis.call('HSET', KEYS[k + 3], unpack(ARGV, at, at + 2 * full - 1))
  elseif full > 0 then
    for j = at, at + 2 * full - 1, 2 do
      if not gone[ARGV[j]] then redis.call('HSET', KEYS[k + 3], ARGV[j], ARGV[j + 1]) end
    end
  end
  for j = at + 2 * full, reports - 1, 2 do
    if not gone or not gone[ARGV[j]] then
      redis.call('HSET', KEYS[k + 3], ARGV[j], merge_report(redis.call('HGET', KEYS[k + 3], ARGV[j]), ARGV[j + 1]))
    end
  end

  if pending then
    local found = redis.call('HMGET', KEYS[k + 4], unpack(members, 1, size))
    for j = 1, size do
      if found[j] then
        cancels[#cancels + 1] = before + j
        cancels[#cancels + 1] = found[j]
      end
    end
  end
  at, before = reports + bare, before + size
end
return {now, dead, cancels, gaps, silences}
