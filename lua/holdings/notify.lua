-- Purpose: keeps notices for a worker in its own shard, until the response to a heartbeat has delivered them.
-- Guarantees: repeating it changes nothing; nothing is kept for a worker that is gone or OFFLINE.
-- KEYS: 1 lubdub:{shard}:notices:<scope>/<worker>, 2 …:worker:<scope>/<worker>
-- ARGV: 1 life ms, then each notice: attempt TAB kind TAB detail (lib/queue.lua, leave_notice)
-- Reply: the number of notices kept
-- Cost: O(log n) for each
--#include lib/clock.lua
local status = redis.call('HGET', KEYS[2], 's')
if not status or status == 'F' then return 0 end
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'NX', now, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return #ARGV - 1
