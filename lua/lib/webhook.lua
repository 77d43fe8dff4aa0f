-- Purpose: a webhook's record, and what it is to be sent. Needs clock.
-- The record has d what it says, as JSON; fn nonce of its creation; c when it was created, u when it was changed, sn since when
--   it is told of events; e 1 while it is on, else '' with er why and ea since when; fs since when nothing but failures came;
--   ss secrets, newest first, each secret:until; n number of the newest delivery; o who delivers; lp the last request that
--   put something into its queue by itself; b how many deliveries are stored and the bytes that they take, m how many bytes
--   they may take; and g, for each pending gap
--   message, number:count:from,to: the count of dropped deliveries, and the times of the first and the last as messages have them.
--   Other times are wall ms.
-- About a delivery it is kept: P, D or X (pending, delivered, dead), tries, when it was made, when it is tried next, when it
--   was tried last, the event, its type and subject, the message's id, and the last answer as JSON, TAB-separated.
--#include lib/digits.lua
local EVENTS, LIST, HOOK_DUE, HOOK, QUEUE, FLIGHT, KEPT, ABOUT, BODIES, DELIVERED, DEAD, SEEN = unpack(KEYS, 1, 12)

-- How many deliveries wait, or are under way.
local function count_pending() return redis.call('ZCARD', QUEUE) + redis.call('ZCARD', FLIGHT) end

-- Has sweepers look at the webhook when its next delivery is due; at once where some are under way. One with none stays there,
-- due never: a webhook that its list has lost is found again.
local function look_at_hook(name)
  local first = redis.call('ZRANGE', FLIGHT, 0, 0, 'WITHSCORES')[2] or redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', HOOK_DUE, first or '9007199254740991', name)
end

-- Returns what is kept about a new delivery.
local function pack_about(event, type, subject, message)
  return table.concat({'P', '0', NOW, NOW, '', event, type, subject, message, ''}, '\t')
end

-- Returns P, D or X of what is kept about a delivery, and when it is tried next.
local function fate_of(about) return string.match(about, '^(%a)\t%d+\t%d+\t(%d*)\t') end

-- Bytes of Redis that a delivery takes besides what is stored about it and its body: its number in two sorted sets and two
-- hashes, measured with Redis 7.0.15. DELIVERY_BYTES is what a small one takes in all.
local ENTRY_BYTES, DELIVERY_BYTES = 460, 1000

-- The bytes that all deliveries took when this script began. Where the record counts another number of deliveries than there
-- are, since a release that counts no bytes has changed them, they are estimated from what the counted ones take on average.
local bytes_before = (function()
  local kept = redis.call('ZCARD', KEPT)
  local count, bytes = string.match(redis.call('HGET', HOOK, 'b') or '', '^(%d+) (%d+)$')
  if tonumber(count) == kept then return tonumber(bytes) end
  if (tonumber(count) or 0) == 0 then return kept * DELIVERY_BYTES end
  return math.floor(bytes / count * kept)
end)()
local bytes_added = 0

local function stored_bytes() return math.max(0, bytes_before + bytes_added) end

-- Records the bytes that deliveries take: at the end of each script that changes deliveries of a webhook.
local function record_bytes()
  local kept = redis.call('ZCARD', KEPT)
  redis.call('HSET', HOOK, 'b', digits(kept) .. ' ' .. (kept == 0 and '0' or digits(stored_bytes())))
end

-- Changes what is stored about a delivery; false: nothing is.
local function set_status(number, status, tries, next, last, answer)
  local about = redis.call('HGET', ABOUT, number)
  if not about then return false end
  local had, made, what, said = string.match(about, '^%a\t(%d+)\t(%d+)\t%d*\t%d*\t([^\t]*\t[^\t]*\t[^\t]*\t[^\t]*)\t(.*)$')
  if tries == '+' then tries = digits(had + 1) end
  local new = table.concat({status, tries or had, made, next, last, what, answer or said}, '\t')
  redis.call('HSET', ABOUT, number, new)
  bytes_added = bytes_added + #new - #about
  return true
end

local function bytes_of(number)
  return ENTRY_BYTES + redis.call('HSTRLEN', ABOUT, number) + redis.call('HSTRLEN', BODIES, number)
end

-- Removes deliveries and all that is stored about them, at most 1,000.
local function forget(numbers)
  if #numbers == 0 then return end
  for _, number in ipairs(numbers) do bytes_added = bytes_added - bytes_of(number) end
  for _, set in ipairs({QUEUE, FLIGHT, KEPT, DELIVERED, DEAD}) do redis.call('ZREM', set, unpack(numbers)) end
  redis.call('HDEL', ABOUT, unpack(numbers))
  redis.call('HDEL', BODIES, unpack(numbers))
end

-- Keeps a delivery that is over among the newest of its set, and forgets the oldest beyond so many.
local function keep(set, number, most)
  redis.call('ZADD', set, 0, number)
  local over = redis.call('ZCARD', set) - most
  if over > 0 then forget(redis.call('ZRANGE', set, 0, math.min(over, 100) - 1)) end
end
