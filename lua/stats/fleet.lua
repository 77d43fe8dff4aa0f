-- Purpose: reads which replicas are live, or the reports of some of them.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{0}:fleet, then lubdub:{0}:replica:<replica> of each requested one
-- ARGV: 1 ms after which a silent one does not count
-- Reply: {wall ms, {replica, last report wall ms, …}, {the report of each requested one, or ''}}
-- Cost: O(replicas); at most 100 a call
--#include lib/clock.lua
local live = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now - ARGV[1]), now, 'WITHSCORES')
local reports = {}
for i = 2, #KEYS do reports[i - 1] = redis.call('GET', KEYS[i]) or '' end
return {now, live, reports}
