-- Purpose: counts what is live and what is silent in a shard, for the mass-expiry brake and for holds of time.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:timeouts, 3 …:ix, 4 …:workers, 5 …:braked, 6 …:workerbeats,
--   then …:beats:<timeoutMs> of each timeout
-- ARGV: 1 percent of a timeout after which an attempt counts as silent, 2 number of timeouts, then these in ms, then scopes
-- Reply: {{timeouts in use, ms}, entries of the brake, {silent and all attempts of each timeout}, {running tasks and
--   workers that are not OFFLINE of each scope}, {late and all live workers}}
-- Cost: O(log n) for each timeout and scope
--#include lib/clock.lua
local L = shard_time(KEYS[1])
local percent, timeouts = tonumber(ARGV[1]), tonumber(ARGV[2])
local attempts, scopes = {}, {}
for i = 1, timeouts do
  local last = string.format('%.0f', L - ARGV[i + 2] * percent / 100)
  attempts[2 * i - 1] = redis.call('ZCOUNT', KEYS[i + 6], '-inf', last)
  attempts[2 * i] = redis.call('ZCOUNT', KEYS[i + 6], '-inf', '(9007199254740991')
end
local function count(key, prefix) return redis.call('ZLEXCOUNT', key, '(' .. prefix .. '/', '(' .. prefix .. '0') end
for i = timeouts + 3, #ARGV do
  scopes[#scopes + 1] = count(KEYS[3], ARGV[i] .. '/R')
  scopes[#scopes + 1] = count(KEYS[4], ARGV[i] .. '/N') + count(KEYS[4], ARGV[i] .. '/D')
end
return {redis.call('SMEMBERS', KEYS[2]), redis.call('ZCARD', KEYS[5]), attempts, scopes,
  {redis.call('ZLEXCOUNT', KEYS[4], '[|', '(}'), redis.call('ZCARD', KEYS[6]) - 1}}
