-- Purpose: puts messages into a webhook's queue.
-- Guarantees: of events that one shard tells, each is put there once: those up to the last that was are left out. Where the
--   shard is read anew that begins again, once for each such reading however often it is repeated. A request of its own is
--   done once, too. When the queue is full, one message stands for all that do not fit, where they would have been.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 <scope>/<id>, 2 most that may wait, 3 shard that tells, or '' for a request of its own, 4 that request, or the id of
--   the last event, 5 name of the reading where the shard is read anew, else '', 6 how the message of a gap begins, 7 how it ends, with the
--   number of events in between, 8 how its id begins, 9 its type,
--   then for each message: id of the event's entry, the event, its type
--   and subject, the message's id and body
-- Reply: {OK, how many did not fit, number of the newest delivery, how many are in the queue
--   now}, {NOT_FOUND}, or {REFUSED}: it is off
-- Cost: O(messages log n), at most 128 of 6 KB
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/streamid.lua
--#include lib/webhook.lua
local name, most, shard, last, anew = unpack(ARGV, 1, 5)
local on, request = unpack(redis.call('HMGET', HOOK, 'e', 'lp'))
if not on then return {NOT_FOUND} end
if on ~= '1' then return {REFUSED} end
local ANEW = shard .. ':anew'
local goes_on = anew == '' or redis.call('HGET', SEEN, ANEW) == anew
local seen = shard ~= '' and goes_on and redis.call('HGET', SEEN, shard)
if shard == '' and request == last then return {OK, 0, tonumber(redis.call('HGET', HOOK, 'n')), 0} end

local queue, kept, about, bodies, number = {}, {}, {}, {}, tonumber(redis.call('HGET', HOOK, 'n') or 0)
local function put(event, type, subject, message, body)
  number = number + 1
  local n = string.format('%013.0f', number)
  queue[#queue + 1], queue[#queue + 2] = NOW, n
  kept[#kept + 1], kept[#kept + 2] = '0', n
  about[#about + 1] = n
  about[#about + 1] = pack_about(event, type, subject, message)
  bodies[#bodies + 1], bodies[#bodies + 2] = n, body
  return n
end

local room, left_out = tonumber(most) - count_pending(), 0
for i = 10, #ARGV, 6 do
  if not seen or is_newer(ARGV[i], seen) then
    if room > 0 then
      put(unpack(ARGV, i + 1, i + 5))
      room = room - 1
    else
      left_out = left_out + 1
    end
  end
end
if left_out > 0 then
  local n, head, count = unpack(redis.call('HMGET', HOOK, 'gq', 'gh', 'gn'))
  if n and redis.call('ZSCORE', QUEUE, n) then
    count = count + left_out
    redis.call('HSET', BODIES, n, head .. digits(count) .. ARGV[7])
  else
    head, count = ARGV[6], left_out
    n = put('', ARGV[9], string.match(name, '[^/]*$'), ARGV[8] .. digits(number + 1), head .. digits(count) .. ARGV[7])
  end
  redis.call('HSET', HOOK, 'gq', n, 'gh', head, 'gn', digits(count))
end
if #queue > 0 then
  redis.call('ZADD', QUEUE, unpack(queue))
  redis.call('ZADD', KEPT, unpack(kept))
  redis.call('HSET', ABOUT, unpack(about))
  redis.call('HSET', BODIES, unpack(bodies))
  redis.call('HSET', HOOK, 'n', digits(number))
  look_at_hook(name)
end
if shard == '' then
  redis.call('HSET', HOOK, 'lp', last)
elseif not seen or is_newer(last, seen) then
  redis.call('HSET', SEEN, shard, last)
end
if not goes_on then redis.call('HSET', SEEN, ANEW, anew) end
return {OK, left_out, number, #bodies / 2}
