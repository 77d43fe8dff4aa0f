-- Purpose: reads the state of shards: who sweeps them, what is overdue, whether their time runs, how long their streams are.
-- Guarantees: writes nothing.
-- KEYS: for each shard lubdub:{shard}:clock, …:timers, …:due, …:workerbeats, …:timeouts, …:sweepers, …:recoveries, …:events,
--   …:outages, …:braked. On Cluster a call covers one shard only.
-- ARGV: 1 ms of wall time within which outages count
-- Reply: wall ms, then for each shard {shard time, ms by which timers, due or workers are overdue, ms for which time has been
--   paused, outage credit ms within that time, recoveries, events, id of the oldest event, tasks and workers that the brake
--   holds, {sweepers}, {timeouts in use, ms}, ms since the newest of these outages ended, {scopes of what the brake holds}}
-- Cost: O(timeouts in use + 50 outages + 100 entries of the brake) for each shard
--#include lib/clock.lua
--#include lib/outage.lua
local reply, KEYS_PER_SHARD, NEVER = {now}, 10, 9007199254740991
local function overdue(key, at)
  local head = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or NEVER
  return math.max(0, at - head)
end
-- The entries of the brake that are in force, without those about whole scopes (lib/brake.lua), and the scopes of the first
-- SAMPLE. Beyond them it may count some scopes, but it is never 0 while members are held.
local SAMPLE = 100
local function held(key, L)
  local from = '(' .. string.format('%.0f', L)
  local count, scopes, listed = redis.call('ZCOUNT', key, from, '(9007199254740991'), {}, {}
  for _, entry in ipairs(count > 0 and redis.call('ZRANGEBYSCORE', key, from, '(9007199254740991', 'LIMIT', 0, SAMPLE) or {}) do
    local kind = string.sub(entry, 1, 2)
    local scope = string.match(entry, '^w:([^/]*/[^/]*)/') or string.match(entry, '^h:[^:]*:([^/]*/[^/]*)/')
    if kind == 'r:' or kind == 'e:' then count = count - 1 end
    if scope and not listed[scope] then
      listed[scope] = true
      scopes[#scopes + 1] = scope
    end
  end
  return count, scopes
end
for k = 1, #KEYS, KEYS_PER_SHARD do
  local L, clock = shard_time(KEYS[k]), redis.call('HMGET', KEYS[k], 'L', 'm')
  local stopped = clock[2] and math.max(0, (now - clock[2]) - (L - clock[1])) or 0
  local credit, ended = 0, 0
  for _, entry in ipairs(redis.call('LRANGE', KEYS[k + 8], 0, 49)) do
    local _, began, lost, ran = unpack_outage(entry)
    if not began or tonumber(began) < now - ARGV[1] then break end
    if credit == 0 then ended = math.max(0, now - began - lost - ran) end
    credit = credit + lost
  end
  local count, scopes = held(KEYS[k + 9], L)
  local first = redis.call('XRANGE', KEYS[k + 7], '-', '+', 'COUNT', 1)[1]
  reply[#reply + 1] = {L, math.max(overdue(KEYS[k + 1], L), overdue(KEYS[k + 2], now), overdue(KEYS[k + 3], L)), stopped, credit,
    redis.call('ZCOUNT', KEYS[k + 6], '-inf', '(9007199254740991'), redis.call('XLEN', KEYS[k + 7]), first and first[1] or '',
    count,
    redis.call('ZRANGEBYSCORE', KEYS[k + 5], now - 1000, now), redis.call('SMEMBERS', KEYS[k + 4]), ended, scopes}
end
return reply
