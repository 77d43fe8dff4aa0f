-- Purpose: records which request makes a claim and its result, so that a repeat gets the same response.
-- Guarantees: of the requests with one claim id, one at a time may take tasks, and once one has taken some no other takes any;
--   of those that only wait the latest counts. A request that dies while it may take loses that right automatically, even if
--   the clock is set back. A request that waits for another is woken when that one takes nothing more, and all that
--   wait under the id are woken when it has got its tasks. Repeating a call changes nothing.
-- KEYS: 1 lubdub:{shard}:claim:<scope>/<worker>/<claim>
-- ARGV: 1 request, 2 life ms, 3 step: make (it begins, and may take), take (it has waited, and may take again), wait (it may
--   not take for now), done (it has taken tasks), ask (to be woken) or look, 4 for how many ms it may take
-- Reply: {0 it makes the claim, 1 another one takes, or died while it did, 2 the claim has got its tasks or 3 no request takes
--   and this one may not, 1 if there was one before, else 0, ms for which another one may take, else 0}
-- Cost: O(1)
--#include lib/clock.lua
--#include lib/wake.lua
local request, step = ARGV[1], ARGV[3]
-- n: a request waits to be woken; r: it was repeated
local f = redis.call('HMGET', KEYS[1], 'o', 's', 'u', 't', 'n', 'r')
local known, mine = f[1] and 1 or 0, f[1] == request
local taking = f[2] == 'take' and not mine
local left = taking and tonumber(f[3]) - now or 0
if left < 0 or left > tonumber(f[4] or 10000) then left = 0 end -- over, or set before the clock was set back
if f[2] == 'done' then return {2, 1, 0} end
if left > 0 or step == 'ask' or step == 'look' or step ~= 'make' and not mine then
  if known == 1 and step ~= 'look' then redis.call('HSET', KEYS[1], 'n', 1) end
  return {taking and 1 or 3, known, left}
end
local state = step == 'make' and 'take' or step
redis.call('HSET', KEYS[1], 'o', request, 's', state, 'u', string.format('%.0f', now + ARGV[4]), 't', ARGV[4])
if known == 1 and not mine then redis.call('HSET', KEYS[1], 'r', 1) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if f[5] and state ~= 'take' or f[6] and state == 'done' then
  redis.call('HDEL', KEYS[1], 'n')
  wake_worker(string.match(KEYS[1], ':claim:(.+)/'))
end
return {0, known, 0}
