-- Purpose: removes delivered notices for workers, or postpones them.
-- Guarantees: repeating it changes nothing.
-- KEYS: 1 lubdub:{shard}:notices:<scope>/<worker> or …:outbox
-- ARGV: 1 '' to remove, else the ms by which to postpone them, then the entries
-- Reply: 1
-- Cost: O(log n) for each
--#include lib/clock.lua
for i = 2, #ARGV do
  if ARGV[1] == '' then
    redis.call('ZREM', KEYS[1], ARGV[i])
  else
    redis.call('ZADD', KEYS[1], 'XX', now + ARGV[1], ARGV[i])
  end
end
return 1
