-- Purpose: remembers which request makes a claim, so that a repeat is known as one and takes over from the first.
-- Guarantees: of two requests with one claim id the later one stands; repeating a request changes nothing.
-- KEYS: 1 lubdub:{shard}:claim:<worker>/<claim>
-- ARGV: 1 request, 2 life ms, 3 1 to make the claim, '' to ask whether this request still makes it
-- Reply: the request that made it before, or '' (none, or this one)
-- Cost: O(1)
local before = redis.call('GET', KEYS[1])
if ARGV[3] == '1' then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return before and before ~= ARGV[1] and before or ''
