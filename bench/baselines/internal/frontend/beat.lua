-- Lands one beat. KEYS: the sorted set of attempts that run, the hash of their reports. ARGV: member, report or ''.
-- Reply: {wall ms, 1 when the attempt runs, else 0}. A member that is not there is not live: membership is the guard.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call('ZADD', KEYS[1], 'XX', 'GT', 'CH', now, ARGV[1]) == 0 and not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return {now, 0}
end
if ARGV[2] ~= '' then redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) end
return {now, 1}
