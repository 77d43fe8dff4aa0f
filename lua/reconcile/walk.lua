-- Purpose: reads a part of one sorted set, hash or set, for a walk over all of it, and returns who sweeps the shard.
-- Guarantees: writes nothing; a walk from cursor 0 until it is 0 again returns every entry that exists all the time.
-- KEYS: 1 the key to walk over, 2 lubdub:{shard}:sweepers
-- ARGV: 1 ZSCAN, HSCAN or SSCAN, 2 cursor, 3 entries, about
-- Reply: {next cursor, {members, or fields}, {sweepers}}
-- Cost: O(entries); a small key is read whole
--#include lib/clock.lua
local page = redis.call(ARGV[1], KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local words = {['ZSCAN'] = 2, ['HSCAN'] = 2, ['SSCAN'] = 1} -- for each entry
local members, step = {}, words[ARGV[1]]
for i = 1, #page[2], step do members[#members + 1] = page[2][i] end
return {page[1], members, redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)} -- the sentinel is none
