-- Purpose: adds messages to a webhook's queue.
-- Guarantees: each event of a shard is added once: those up to the last one added are left out. If the shard is read again,
--   this starts over, once for each such reading however often it is repeated. A request that queues a delivery itself takes
--   effect once, too. If the deliveries would take too many bytes, the oldest are dropped, finished ones first; the message of
--   a gap reports the pending ones. A request drops only finished ones, and is refused if that is not enough.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 scope, 2 id, 3 bytes that all deliveries may take, 4 shard of the events, or '' for a request, 5 the request, or the
--   id of the last event, 6 name of the reading if the shard is read again, else '', 7 message of a gap with $F and $T for the
--   times of the first and last dropped event and $N for their number, 8 its type, 9 prefix of its id, then for each message:
--   id of the event's entry, the event, its type and subject, the message's id and body
-- Reply: {OK, number of dropped deliveries, number of the latest delivery, number of added deliveries, 1 if none was added
--   since more must be dropped first: call again}, {NOT_FOUND}, {REFUSED}: it is off, or {TERMINAL}: a request does not fit
-- Cost: O(messages log n), at most 128 of 6 KB, and 500 dropped ones
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/streamid.lua
--#include lib/webhook.lua
--#include lib/webhookoff.lua
--#include lib/webhookput.lua
local scope, id, most, shard, last, reread, gap_text, gap_type, gap_begins = unpack(ARGV, 1, 9)
local on, request = unpack(redis.call('HMGET', HOOK, 'e', 'lp'))
if not on then return {NOT_FOUND} end
if on ~= '1' then return {REFUSED} end
local REREAD = shard .. ':anew'
local continues = reread == '' or redis.call('HGET', SEEN, REREAD) == reread
local seen = shard ~= '' and continues and redis.call('HGET', SEEN, shard)
if shard == '' and request == last then return {OK, 0, number, 0, 0} end

local new, added = {}, 0 -- where the new messages begin in ARGV, and their bytes
for i = 10, #ARGV, 6 do
  if not seen or is_newer(ARGV[i], seen) then
    new[#new + 1] = i
    added = added + ENTRY_BYTES + #pack_about(unpack(ARGV, i + 1, i + 4)) + #ARGV[i + 5]
  end
end

local room, again, first = most - GAP_BYTES - added, 0, 1
if #new > 0 and stored_bytes() > room then
  drop_oldest(room, shard ~= '')
  if stored_bytes() > room and shard == '' then
    record_bytes()
    return {TERMINAL}
  end
  if stored_bytes() > room and redis.call('ZCARD', KEPT) > 0 then again = 1 end
  while again == 0 and stored_bytes() > room and first <= #new do -- the new ones alone are too many
    local i = new[first]
    drop(ARGV[i + 5])
    room = room + ENTRY_BYTES + #pack_about(unpack(ARGV, i + 1, i + 4)) + #ARGV[i + 5]
    first = first + 1
  end
end
report_gap(scope, id, gap_text, gap_type, gap_begins)
local put_before = #queue
for i = again == 0 and first or #new + 1, #new do put(unpack(ARGV, new[i] + 1, new[i] + 5)) end
put_all()
if #new > 0 then
  record_bytes()
  schedule_webhook(scope .. '/' .. id)
end
if again == 1 then return {OK, dropped.count, number, 0, 1} end
if shard == '' then
  redis.call('HSET', HOOK, 'lp', last)
elseif not seen or is_newer(last, seen) then
  redis.call('HSET', SEEN, shard, last)
end
if not continues then redis.call('HSET', SEEN, REREAD, reread) end
return {OK, dropped.count, number, (#queue - put_before) / 2, 0}
