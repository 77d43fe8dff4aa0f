-- Purpose: remembers which request makes a claim and what came of it, so that a repeat gets the same answer.
-- Guarantees: of the requests with one claim id one at a time may take tasks, and once one has taken some no other
--   takes any; of those that only wait the latest stands. A request that dies while it may take loses that by itself.
--   Repeating a call changes nothing.
-- KEYS: 1 lubdub:{shard}:claim:<scope>/<worker>/<claim>
-- ARGV: 1 request, 2 life ms, 3 what it does: make (it begins, and may take), take (it has waited, and may take again),
--   wait (it may not take for now), done (it has taken tasks) or ask, 4 for how many ms it may take
-- Reply: {0 it makes the claim, 1 another one may be taking just now, 2 the claim has got its tasks or 3 another one
--   makes it, 1 when there was one before, else 0}
-- Cost: O(1)
--#include lib/clock.lua
local request, step = ARGV[1], ARGV[3]
local f = redis.call('HMGET', KEYS[1], 'o', 's', 'u')
local known, mine = f[1] and 1 or 0, f[1] == request
if f[2] == 'done' then return {2, 1} end
if step == 'make' and not mine then
  if f[2] == 'take' and tonumber(f[3]) > now then return {1, 1} end
elseif not mine or step == 'ask' then
  return {3, known}
end
local state = step == 'make' and 'take' or step
redis.call('HSET', KEYS[1], 'o', request, 's', state, 'u', string.format('%.0f', now + ARGV[4]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {0, known}
