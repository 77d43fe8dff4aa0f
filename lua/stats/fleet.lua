-- Purpose: reads which replicas are there, or what some of them have said of themselves.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{0}:fleet, then lubdub:{0}:replica:<replica> of each that is asked for
-- ARGV: 1 ms after which a silent one counts no more
-- Reply: {wall ms, {replica, heard wall ms, …}, {what each of those asked for has said, or ''}}
-- Cost: O(replicas); at most 100 a call
--#include lib/clock.lua
local there = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now - ARGV[1]), now, 'WITHSCORES')
local said = {}
for i = 2, #KEYS do said[i - 1] = redis.call('GET', KEYS[i]) or '' end
return {now, there, said}
