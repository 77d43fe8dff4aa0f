-- Purpose: a webhook's record, and what it is to be sent. Needs clock.
-- The record has d what it says, as JSON; fn nonce of its creation; c when it was created, u when it was changed, sn since when
--   it is told of events; e 1 while it is on, else '' with er why and ea since when; fs since when nothing but failures came;
--   ss secrets, newest first, each secret:until; n number of the newest delivery; o who delivers; lp the last request that
--   put something into its queue by itself; and of the gap that is told next gq the number of the message, gh how that
--   begins, gn how many events it stands for. Times are wall ms.
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

-- Returns what is kept about a delivery with other words of its fate; nil: nothing is kept of it.
local function retold(number, status, tries, next, last, answer)
  local about = redis.call('HGET', ABOUT, number)
  if not about then return nil end
  local had, made, what, said = string.match(about, '^%a\t(%d+)\t(%d+)\t%d*\t%d*\t([^\t]*\t[^\t]*\t[^\t]*\t[^\t]*)\t(.*)$')
  if tries == '+' then tries = digits(had + 1) end
  return table.concat({status, tries or had, made, next, last, what, answer or said}, '\t')
end

-- Keeps a delivery that is over among the newest of its set, and forgets the oldest beyond so many.
local function keep(set, number, most)
  redis.call('ZADD', set, 0, number)
  local over = redis.call('ZCARD', set) - most
  if over <= 0 then return end
  local old = redis.call('ZRANGE', set, 0, math.min(over, 100) - 1)
  redis.call('ZREM', set, unpack(old))
  redis.call('ZREM', KEPT, unpack(old))
  redis.call('HDEL', ABOUT, unpack(old))
  redis.call('HDEL', BODIES, unpack(old))
end
