-- Purpose: lands a batch of beats of one shard and keeps its shard time running; with no beats it does only the latter.
-- Guarantees: only members of the beats sets are touched: membership is the attempt guard, so a superseded, failed or
--   finished attempt is named in the reply and not written. Scores never fall. Repeating it is harmless. Shard time
--   moves by at most 250 ms a call, before anything else is written.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:outages, 3 …:progress, 4 …:cancels, 5 …:replicas, then one …:beats:<timeoutMs>
--   for each group of beats; only with no beats: 6 …:timeouts, 7 …:timers, 8 …:due, 9 …:ix, 10 …:events, 11 …:sweepers
-- ARGV: 1 replica (only read with no beats), 2 window ms after which a silent replica is forgotten, 3 number of full
--   reports, 4 number of partial reports, 5 number of groups, then each group's size, then the members group by
--   group, then member and packed report for each full one, then the same for each partial one
-- Reply: {wall ms, shard time ms, gap ms since the last step, {positions of members that are not live}, {position,
--   cancel, …} of members with a cancel pending, {replicas} only with no beats}
-- Cost: O(log n) for each beat; one ZADD for each group, at most one ZMSCORE more, one HSET, one HMGET while cancels
--   are pending
local TIME = redis.call('TIME')
local now = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
local c = redis.call('HMGET', KEYS[1], 'L', 'm')
local L, m = tonumber(c[1]), tonumber(c[2])
if not L or not m then L, m = now, now end
local gap = now - m
local step = gap
if step > 250 then step = 250 elseif step < 0 then step = 0 end
L = L + step
redis.call('HSET', KEYS[1], 'L', L, 'm', now)
if gap > 250 then
  redis.call('LPUSH', KEYS[2], string.format('%.0f\t%.0f\t%.0f', L, m, gap - step))
  redis.call('LTRIM', KEYS[2], 0, 999)
end

local groups = tonumber(ARGV[5])
local dead, cancels = {}, {}
if groups == 0 then
  redis.call('ZADD', KEYS[5], now, ARGV[1])
  if redis.call('EXISTS', unpack(KEYS)) < #KEYS then -- a new shard, or one whose store was lost
    for _, i in ipairs({3, 4}) do redis.call('HSET', KEYS[i], '!', '') end
    for _, i in ipairs({7, 8, 11}) do redis.call('ZADD', KEYS[i], '9007199254740991', '!') end
    redis.call('SADD', KEYS[6], '!')
    redis.call('ZADD', KEYS[9], 0, '!')
    if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('RPUSH', KEYS[2], '!') end
    if redis.call('EXISTS', KEYS[10]) == 0 then
      redis.call('XADD', KEYS[10], '*', 'type', 'system.shard_started', 'time', now)
    end
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - ARGV[2])
  return {now, L, gap, dead, cancels, redis.call('ZRANGE', KEYS[5], 0, -1)}
end

local score = string.format('%.0f', L)
local first = 6 + groups
for g = 1, groups do
  local size = tonumber(ARGV[5 + g])
  local args = {}
  for i = 0, size - 1 do
    args[2 * i + 1] = score
    args[2 * i + 2] = ARGV[first + i]
  end
  if redis.call('ZADD', KEYS[5 + g], 'XX', 'GT', 'CH', unpack(args)) < size then
    local scores = redis.call('ZMSCORE', KEYS[5 + g], unpack(ARGV, first, first + size - 1))
    for i = 1, size do
      if not scores[i] then dead[#dead + 1] = first - 6 - groups + i end
    end
  end
  first = first + size
end

local full, partial = tonumber(ARGV[3]), tonumber(ARGV[4])
if full + partial > 0 then
  local gone = {}
  for _, i in ipairs(dead) do gone[ARGV[5 + groups + i]] = true end
  if full > 0 and #dead == 0 then
    redis.call('HSET', KEYS[3], unpack(ARGV, first, first + 2 * full - 1))
  elseif full > 0 then
    for i = first, first + 2 * full - 1, 2 do
      if not gone[ARGV[i]] then redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
    end
  end
  --#include lib/report.lua
  for i = first + 2 * full, first + 2 * (full + partial) - 1, 2 do
    if not gone[ARGV[i]] then
      redis.call('HSET', KEYS[3], ARGV[i], merge_report(redis.call('HGET', KEYS[3], ARGV[i]), ARGV[i + 1]))
    end
  end
end

if redis.call('HLEN', KEYS[4]) > 1 then
  local base = 5 + groups
  local found = redis.call('HMGET', KEYS[4], unpack(ARGV, base + 1, first - 1))
  for i = 1, first - 1 - base do
    if found[i] then
      cancels[#cancels + 1] = i
      cancels[#cancels + 1] = found[i]
    end
  end
end
return {now, L, gap, dead, cancels}
