-- Puts an attempt among those that run. KEYS and ARGV: as for a beat. Reply: {wall ms, 1}.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[1], 'GT', now, ARGV[1])
return {now, 1}
