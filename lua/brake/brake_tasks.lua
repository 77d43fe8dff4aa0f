-- Purpose: holds running attempts that would expire now for a second timeout period, or releases held ones at once.
-- Guarantees: each score is checked again against shard time; an attempt is held once after each of its heartbeats, and not in
--   a scope that an operator has released; its last heartbeat stays recorded. Repeating it is harmless.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked, 3 …:beats:<timeoutMs>, then …:task:<scope>/<id> of each task
-- ARGV: 1 hold or free, 2 heartbeat timeout ms, then scope and member of each task
-- Reply: for each task 1 if it was held, or released; 2 if it may expire: it was held before, its scope was released or it is
--   not running any more; else 0
-- Cost: O(log n) for each; at most 50 a call
--#include lib/clock.lua
--#include lib/brake.lua
--#include lib/member.lua
--#include lib/brakehold.lua
local action, timeout, beats = ARGV[1], tonumber(ARGV[2]), KEYS[3]
local reply = {}
for n = 1, #KEYS - 3 do
  local scope, member, key = ARGV[2 * n + 1], ARGV[2 * n + 2], KEYS[n + 3]
  local entry = pack_brake_hold(ARGV[2], member)
  local score = tonumber(redis.call('ZSCORE', beats, member))
  local f = redis.call('HMGET', key, 's', 'a', 'f', 'bh', 'bb')
  local given, last = tonumber(f[4]), tonumber(f[5])
  local current = f[1] == 'R' and attempt_in(member) == f[2] .. '.' .. f[3]
  reply[n] = 0
  if action == 'free' then
    redis.call('ZREM', BRAKED, entry)
    if score and current and score == given then
      redis.call('ZADD', beats, last, member)
      reply[n] = 1
    end
  elseif score and L - score > timeout then
    if not current or score == given or score == last or in_force('r:' .. scope) then
      reply[n] = 2
    else
      local at = string.format('%.0f', L)
      redis.call('HSET', key, 'bh', at, 'bb', string.format('%.0f', score))
      redis.call('ZADD', beats, at, member)
      record_until(entry, L + timeout)
      reply[n] = 1
    end
  end
end
return reply
