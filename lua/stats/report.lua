-- Purpose: registers a replica with its facts, and adds what it has counted in a step of time.
-- Guarantees: what a replica counted in a step is added once, however often it is reported; a replica that is silent for too
--   long is dropped, and more than 1,000 are refused. One replica at a time publishes the counts of the whole deployment;
--   another one does so when that one has not reported for its lease.
-- KEYS: 1 lubdub:{0}:fleet, 2 lubdub:{0}:replica:<replica>, 3 lubdub:{0}:step:<step>, 4 lubdub:{0}:teller
-- ARGV: 1 replica, 2 its facts as JSON, 3 ms after which a silent one is dropped, 4 begin of the step, wall ms, or '' for
--   none, 5 life of a step ms, 6 sweep lag ms, 7 lease ms of the replica that publishes the counts, then counters as name and
--   increment
-- Reply: {OK, wall ms, 1 if the levels of the step are not recorded yet, else 0, 1 if this replica publishes the counts, else
--   0} or {REFUSED, wall ms}
-- Cost: O(log n + counters)
--#include lib/clock.lua
--#include lib/codes.lua
local FLEET, REPLICA, STEP, TELLER = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local MAX_REPLICAS, MAX_AGE_MS = 1000, 60000
redis.call('ZREMRANGEBYSCORE', FLEET, '-inf', string.format('%.0f', now - ARGV[3]))
if not redis.call('ZSCORE', FLEET, ARGV[1]) and redis.call('ZCARD', FLEET) >= MAX_REPLICAS then return {REFUSED, now} end
redis.call('ZADD', FLEET, now, ARGV[1])
redis.call('SET', REPLICA, ARGV[2], 'PX', ARGV[3])
local till, publisher = string.match(redis.call('GET', TELLER) or '', '^(%d+) (.+)$')
local publishes = (not till or publisher == ARGV[1] or tonumber(till) < now) and 1 or 0
if publishes == 1 then redis.call('SET', TELLER, string.format('%.0f %s', now + ARGV[7], ARGV[1]), 'PX', ARGV[7]) end
local began = tonumber(ARGV[4])
if not began or now < began or now - began > MAX_AGE_MS then return {OK, now, 0, publishes} end
if redis.call('HSETNX', STEP, 'r:' .. ARGV[1], 1) == 1 then
  redis.call('PEXPIRE', STEP, ARGV[5])
  for i = 8, #ARGV, 2 do redis.call('HINCRBY', STEP, ARGV[i], ARGV[i + 1]) end
  if tonumber(ARGV[6]) > (tonumber(redis.call('HGET', STEP, 'lag')) or -1) then redis.call('HSET', STEP, 'lag', ARGV[6]) end
end
return {OK, now, redis.call('HEXISTS', STEP, 'told') == 0 and 1 or 0, publishes}
