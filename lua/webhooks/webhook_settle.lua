-- Purpose: records the results of deliveries that were in progress.
-- Guarantees: a delivery that is not in progress for this process any more is left unchanged, so a repeat changes nothing. A
--   webhook that responded that it is gone, or that failed for too long, is switched off.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 scope, 2 id, 3 who delivers, 4 how many finished deliveries of each kind are kept, 5 ms of failures after which the
--   webhook is switched off, 6 message of a gap with $F and $T for the times of the first and last dropped event and $N for
--   their number, 7 its type, 8 prefix of its id, then for each its number, d delivered, r to be tried again, x dead or g dead
--   and the webhook is gone, ms until it is tried again, and the response as JSON, which is left out if it does not fit
-- Reply: {number of recorded results, '' or why it was switched off, number of dropped deliveries}
-- Cost: O(deliveries log n), at most 64 of 7 KB, and 500 dropped ones
--#include lib/clock.lua
--#include lib/webhook.lua
--#include lib/webhookoff.lua
--#include lib/webhookput.lua
local scope, id, who, most, longest, gap_text, gap_type, gap_begins = unpack(ARGV, 1, 8)
local owner, on, failing, max_bytes = unpack(redis.call('HMGET', HOOK, 'o', 'e', 'fs', 'm'))
if owner ~= who then return {0, '', 0} end

-- Makes room for the responses, and reports whether they fit.
local function make_room()
  if not max_bytes then return true end
  local added, settled = 0, {}
  for i = 9, #ARGV, 4 do
    settled[ARGV[i]] = true
    added = added + 40 + #ARGV[i + 3]
  end
  local room = max_bytes - GAP_BYTES - added
  if stored_bytes() > room then drop_oldest(room, true, settled) end
  return stored_bytes() + added <= tonumber(max_bytes)
end

local recorded, off, has_room = 0, '', make_room()
for i = 9, #ARGV, 4 do
  local number, result, wait, response = unpack(ARGV, i, i + 3)
  if redis.call('ZREM', FLIGHT, number) == 1 then
    recorded = recorded + 1
    local next = result == 'r' and digits(now + wait) or ''
    local status = result == 'd' and 'D' or result == 'r' and 'P' or 'X'
    if not set_status(number, status, '+', next, NOW, has_room and response or nil) then
      forget({number}) -- the store has lost its entry
    elseif result == 'r' then
      redis.call('ZADD', QUEUE, next, number)
    else
      keep(result == 'd' and DELIVERED or DEAD, number, tonumber(most))
    end
    if result == 'd' then
      if failing then redis.call('HDEL', HOOK, 'fs') end
      failing = nil
    elseif not failing then
      failing = NOW
      redis.call('HSET', HOOK, 'fs', NOW)
    end
    if result == 'g' then off = 'GONE' end
  end
end
if off == '' and failing and now - failing >= tonumber(longest) then off = 'FAILING' end
if off ~= '' and on == '1' and recorded > 0 then
  switch_off(scope, id, off)
else
  off = ''
end
report_gap(scope, id, gap_text, gap_type, gap_begins) -- after the one that was in progress waits again, if it failed
put_all()
schedule_webhook(scope .. '/' .. id)
record_bytes()
return {recorded, off, dropped.count}
