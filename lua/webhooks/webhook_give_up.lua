-- Purpose: gives up the pending deliveries of a webhook that is off.
-- Guarantees: nothing is given up while it is on.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 <scope>/<id>, 2 how many dead deliveries are kept, 3 how many to give up
-- Reply: the number of pending ones left
-- Cost: O(given up × log n), at most 100
--#include lib/clock.lua
--#include lib/webhook.lua
local name, most, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('HGET', HOOK, 'e') == '1' then return 0 end
for _, set in ipairs({FLIGHT, QUEUE}) do
  for _, number in ipairs(redis.call('ZRANGE', set, 0, count - 1)) do
    redis.call('ZREM', set, number)
    if set_status(number, 'X', nil, '', '') then keep(DEAD, number, most) end
  end
end
schedule_webhook(name)
if redis.call('EXISTS', HOOK) == 1 then record_bytes() end
return count_pending()
