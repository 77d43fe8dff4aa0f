-- Purpose: a webhook's record and its deliveries. Needs clock.
-- The record has d its definition, as JSON; fn nonce of its creation; c when it was created, u when it was changed, sn since
-- when it gets events; e 1 while it is on, else '' with er why and ea since when; fs since when all deliveries have failed; ss
-- secrets, latest first, each secret:until; n number of the latest delivery; o who delivers; lp the last request that queued a
-- delivery itself; b number of stored deliveries and their bytes, m how many bytes they may take; and g, for each pending gap
-- message, number:count:from,to: the number of dropped deliveries, and the times of the first and the last in the format of
-- messages. Other times are wall ms.
-- An entry about a delivery: P, D or X (pending, delivered, dead), tries, when it was created, when it is tried next, when it
-- was last tried, the event, its type and subject, the message's id, and the last response as JSON, TAB-separated.
--#include lib/digits.lua
local EVENTS, LIST, HOOK_DUE, HOOK, QUEUE, FLIGHT, KEPT, ABOUT, BODIES, DELIVERED, DEAD, SEEN = unpack(KEYS, 1, 12)

-- The number of deliveries that wait or are in progress.
local function count_pending() return redis.call('ZCARD', QUEUE) + redis.call('ZCARD', FLIGHT) end

-- Schedules the webhook for when its next delivery is due; at once if deliveries are in progress. A webhook without any stays
-- there, due never, so that it is found again if its list has lost it.
local function schedule_webhook(name)
  local first = redis.call('ZRANGE', FLIGHT, 0, 0, 'WITHSCORES')[2] or redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', HOOK_DUE, first or '9007199254740991', name)
end

-- Returns the entry about a new delivery.
local function pack_about(event, type, subject, message)
  return table.concat({'P', '0', NOW, NOW, '', event, type, subject, message, ''}, '\t')
end

-- Returns P, D or X from the entry about a delivery, and when it is tried next.
local function delivery_status(about) return string.match(about, '^(%a)\t%d+\t%d+\t(%d*)\t') end

-- Bytes of Redis that a delivery takes besides its entry and its body: its number in two sorted sets and two hashes, measured
-- with Redis 7.0.15. DELIVERY_BYTES is the total of a small one.
local ENTRY_BYTES, DELIVERY_BYTES = 460, 1000

-- The bytes of all deliveries when this script began. If the record counts another number of deliveries than exist, since a
-- release that counts no bytes has changed them, they are estimated from the average of the counted ones.
local bytes_before = (function()
  local stored = redis.call('ZCARD', KEPT)
  local count, bytes = string.match(redis.call('HGET', HOOK, 'b') or '', '^(%d+) (%d+)$')
  if tonumber(count) == stored then return tonumber(bytes) end
  if (tonumber(count) or 0) == 0 then return stored * DELIVERY_BYTES end
  return math.floor(bytes / count * stored)
end)()
local bytes_added = 0

local function stored_bytes() return math.max(0, bytes_before + bytes_added) end

-- Records the bytes of deliveries, at the end of each script that changes deliveries of a webhook.
local function record_bytes()
  local stored = redis.call('ZCARD', KEPT)
  redis.call('HSET', HOOK, 'b', digits(stored) .. ' ' .. (stored == 0 and '0' or digits(stored_bytes())))
end

-- Changes the entry about a delivery; false: there is none.
local function set_status(number, status, tries, next, last, response)
  local about = redis.call('HGET', ABOUT, number)
  if not about then return false end
  local had, created, event, last_response = string.match(about,
    '^%a\t(%d+)\t(%d+)\t%d*\t%d*\t([^\t]*\t[^\t]*\t[^\t]*\t[^\t]*)\t(.*)$')
  if tries == '+' then tries = digits(had + 1) end
  local new = table.concat({status, tries or had, created, next, last, event, response or last_response}, '\t')
  redis.call('HSET', ABOUT, number, new)
  bytes_added = bytes_added + #new - #about
  return true
end

local function bytes_of(number)
  return ENTRY_BYTES + redis.call('HSTRLEN', ABOUT, number) + redis.call('HSTRLEN', BODIES, number)
end

-- Removes deliveries with all their data, at most 1,000.
local function forget(numbers)
  if #numbers == 0 then return end
  for _, number in ipairs(numbers) do bytes_added = bytes_added - bytes_of(number) end
  for _, set in ipairs({QUEUE, FLIGHT, KEPT, DELIVERED, DEAD}) do redis.call('ZREM', set, unpack(numbers)) end
  redis.call('HDEL', ABOUT, unpack(numbers))
  redis.call('HDEL', BODIES, unpack(numbers))
end

-- Keeps a finished delivery among the latest of its set, and removes the oldest ones beyond `most`.
local function keep(set, number, most)
  redis.call('ZADD', set, 0, number)
  local over = redis.call('ZCARD', set) - most
  if over > 0 then forget(redis.call('ZRANGE', set, 0, math.min(over, 100) - 1)) end
end
