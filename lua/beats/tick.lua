-- Purpose: an empty beat: keeps the time of some shards running while they get no heartbeats, or slows it while balancers may
--   keep all clients from all replicas; reports outages that are over, and creates the shards' fixed keys.
-- Guarantees: shard time moves by at most 250 ms a call, before anything else of the shard is written. Repeating it is
--   harmless.
-- KEYS: for each shard twenty-six: 1 lubdub:{shard}:clock, 2 …:outages, 3 …:progress, 4 …:cancels, 5 …:replicas,
--   6 …:timeouts, 7 …:timers, 8 …:due, 9 …:ix, 10 …:events, 11 …:sweepers, 12 …:ready, 13 …:held, 14 …:outbox,
--   15 …:fences, 16 …:pauses, 17 …:workers, 18 …:workerbeats, 19 …:workerdue, 20 …:recoveries, 21 …:braked, 22 …:schedules,
--   23 …:scheduledue, 24 …:eventmarks, 25 …:webhooks, 26 …:hookdue.
--   On Cluster a call is about one shard only. With shard 0, last of all …:meta
-- ARGV: 1 replica that keeps the shards' time, 2 window ms after which a silent replica is dropped, 3 shards of the
--   deployment, 4 health check period ms, 5 timeout of workers ms, then for each shard the ms for which balancers may still
--   keep the clients from this replica: at most the period
-- Reply: wall ms, then for each shard {shard time ms, gap ms since the clock was last written or -1, {replicas that keep the
--   shard's time}}
-- Cost: O(number of replicas) for each shard, one event for each outage to report
--#include lib/clock.lua
--#include lib/step.lua
--#include lib/primary.lua
--#include lib/slowclock.lua
--#include lib/cutoff.lua
--#include lib/event.lua
--#include lib/outages.lua
local KEYS_PER_SHARD = 26

-- Creates the fixed keys of a new shard, or of one whose store was lost.
local function create_keys(k)
  -- The value is too long for a listpack: even a few reports are in a hash table, so that writing one scans nothing.
  redis.call('HSET', k[3], '!', string.rep('.', 65))
  redis.call('HSET', k[4], '!', '')
  redis.call('HSET', k[24], '!', '')
  for _, i in ipairs({7, 8, 11, 14, 15, 18, 19, 20, 21, 23, 26}) do redis.call('ZADD', k[i], '9007199254740991', '!') end
  redis.call('SADD', k[6], '!')
  for _, i in ipairs({9, 12, 13, 16, 17, 22, 25}) do redis.call('ZADD', k[i], 0, '!') end
  if redis.call('EXISTS', k[2]) == 0 then
    redis.call('RPUSH', k[2], '!')
    note_first(k[1]) -- not if an upgrade adds keys: an older shard's primary may have changed
  end
  if redis.call('EXISTS', k[10]) == 0 then
    write_event(k[10], 'system.shard_started', {})
  end
end

local reply = {now}
for first = 1, #KEYS - KEYS_PER_SHARD + 1, KEYS_PER_SHARD do
  local last = first + KEYS_PER_SHARD - 1
  local cut_off_for = tonumber(ARGV[6 + (first - 1) / KEYS_PER_SHARD]) or 0
  local longest = cut_off_for > 0 and longest_slow(ARGV[4], KEYS[first + 5], KEYS[first + 17], ARGV[5]) or 0
  local cut_off = cut_off_for > 0 and ARGV[4] - cut_off_for < longest
  local L, gap = step(KEYS[first], KEYS[first + 1], cut_off and 1)
  local replicas, all_cut_off = record_replica(KEYS[first + 4], ARGV[1], cut_off, ARGV[2])
  if all_cut_off then slow_cut_off(KEYS[first], L, longest) end
  report_outages(KEYS[first], KEYS[first + 1], KEYS[first + 9])
  if redis.call('EXISTS', unpack(KEYS, first, last)) < KEYS_PER_SHARD then create_keys({unpack(KEYS, first, last)}) end
  reply[#reply + 1] = {L, gap, replicas}
end
local meta = #KEYS % KEYS_PER_SHARD == 1 and KEYS[#KEYS]
if meta and redis.call('EXISTS', meta) == 0 then redis.call('HSET', meta, 'shards', ARGV[3]) end
return reply
