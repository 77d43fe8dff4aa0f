-- Purpose: sets how many bytes a webhook's deliveries may take, and drops the oldest if they take more.
-- Guarantees: finished ones are dropped first; the message of a gap reports the pending ones.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 scope, 2 id, 3 bytes that all deliveries may take, 4 message of a gap with $F and $T for the times of the first and
--   last dropped event and $N for their number, 5 its type, 6 prefix of its id
-- Reply: {number of dropped deliveries, 1 if there are more to drop: call again}
-- Cost: O(log n), and 500 dropped ones
--#include lib/clock.lua
--#include lib/webhook.lua
--#include lib/webhookoff.lua
--#include lib/webhookput.lua
local scope, id, most, gap_text, gap_type, gap_begins = unpack(ARGV, 1, 6)
if redis.call('EXISTS', HOOK) == 0 then return {0, 0} end
redis.call('HSET', HOOK, 'm', most)
local room = most - GAP_BYTES
if stored_bytes() > tonumber(most) then
  drop_oldest(room, true)
  if redis.call('HGET', HOOK, 'e') == '1' then report_gap(scope, id, gap_text, gap_type, gap_begins) end
  put_all()
  schedule_webhook(scope .. '/' .. id)
end
record_bytes()
return {dropped.count, stored_bytes() > tonumber(most) and redis.call('ZCARD', KEPT) > 0 and 1 or 0}
