-- Purpose: takes due deliveries of a webhook out of its queue, for a process that delivers them.
-- Guarantees: what is taken is in progress until it is settled. Before that, what another process had in progress returns to
--   its place: that process is dead, or does not know yet that its turn is over. If the webhook failed last, a turn begins
--   with one delivery.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 <scope>/<id>, 2 who delivers, 3 how many to take
-- Reply: {OK, its definition, secrets, wall ms, then for each its number, the entry about it, and its body}, {NOT_FOUND}, or
--   {REFUSED}: it is off
-- Cost: O((taken + in progress before) × log n), at most 64 of 6 KB
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/webhook.lua
local name, who, most = unpack(ARGV, 1, 3)
local on, definition, secrets, owner, failing = unpack(redis.call('HMGET', HOOK, 'e', 'd', 'ss', 'o', 'fs'))
if not definition then
  redis.call('ZREM', HOOK_DUE, name)
  return {NOT_FOUND}
end
if on ~= '1' then return {REFUSED} end
if owner ~= who then
  local abandoned = redis.call('ZRANGE', FLIGHT, 0, -1, 'WITHSCORES')
  for i = 1, #abandoned, 2 do redis.call('ZADD', QUEUE, abandoned[i + 1], abandoned[i]) end
  redis.call('DEL', FLIGHT)
  redis.call('HSET', HOOK, 'o', who)
  if failing then most = 1 end
end
local due = redis.call('ZRANGEBYSCORE', QUEUE, '-inf', NOW, 'WITHSCORES', 'LIMIT', 0, tonumber(most))
local reply = {OK, definition, secrets, now}
for i = 1, #due, 2 do
  local number = due[i]
  redis.call('ZREM', QUEUE, number)
  local about, body = redis.call('HGET', ABOUT, number), redis.call('HGET', BODIES, number)
  if about and body then
    redis.call('ZADD', FLIGHT, due[i + 1], number)
    reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = number, about, body
  else -- the store has lost it
    forget({number})
  end
end
schedule_webhook(name)
if bytes_added ~= 0 then record_bytes() end
return reply
