-- Purpose: holds workers that would expire for silence now for a second timeout period, or releases held ones at once.
-- Guarantees: silence is checked again against shard time; a worker is held once after each of its heartbeats, and not in a
--   scope that an operator has released; its last heartbeat stays recorded. Repeating it is harmless.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked, 3 …:workerbeats, then …:worker:<scope>/<id> of each worker
-- ARGV: 1 hold or free, then scope and id of each worker
-- Reply: for each worker 1 if it was held, or released; 2 if it may expire: it was held before, its scope was released or it
--   is not live; else 0
-- Cost: O(log n) for each; at most 50 a call
--#include lib/clock.lua
--#include lib/brake.lua
local action, workerbeats = ARGV[1], KEYS[3]
local reply = {}
for n = 1, #KEYS - 3 do
  local scope, id, key = ARGV[2 * n], ARGV[2 * n + 1], KEYS[n + 3]
  local name = scope .. '/' .. id
  local f = redis.call('HMGET', key, 's', 't', 'bl', 'px', 'br')
  local timeout, beat, held_at = tonumber(f[2]), tonumber(f[3]), tonumber(f[5])
  local live = (f[1] == 'N' or f[1] == 'D') and beat
  local was_held = live and held_at and held_at >= beat
  reply[n] = 0
  if action == 'free' then
    redis.call('ZREM', BRAKED, 'w:' .. name)
    if was_held and held_at + timeout > L then
      redis.call('HSET', key, 'br', string.format('%.0f', beat)) -- held once, and nothing left to wait for
      redis.call('ZADD', workerbeats, string.format('%.0f', L), name)
      reply[n] = 1
    end
  elseif not live or was_held or in_force('r:' .. scope) then
    reply[n] = 2
  elseif L - math.max(beat, tonumber(f[4]) or 0) >= timeout then
    redis.call('HSET', key, 'br', string.format('%.0f', L))
    redis.call('ZADD', workerbeats, string.format('%.0f', L + timeout), name)
    record_until('w:' .. name, L + timeout)
    reply[n] = 1
  end
end
return reply
