-- Purpose: creates a webhook, or changes the definition of one.
-- Guarantees: a repeat of the same creation (same nonce) is distinguished from another webhook with that id. A webhook that is
--   switched on gets events from half a minute before; sweepers give up what waits when it is switched off.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 scope, 2 id, 3 nonce of the creation, or '' for a change, 4 its definition as JSON, 5 1 on, '' off, 6 secret of the
--   creation, else ''
-- Reply: {OK, REPEATED, EXISTS or NOT_FOUND}
-- Cost: O(log n), one event
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/webhook.lua
--#include lib/webhookoff.lua
local scope, id, nonce, definition, on, secret = unpack(ARGV, 1, 6)
local BEFORE_MS = 30000 -- clocks of other shards' servers may be behind
local had, was_on = unpack(redis.call('HMGET', HOOK, 'fn', 'e'))
if nonce ~= '' and had then return {had == nonce and REPEATED or EXISTS} end
if nonce == '' and not had then return {NOT_FOUND} end
if nonce ~= '' then
  redis.call('UNLINK', QUEUE, FLIGHT, KEPT, ABOUT, BODIES, DELIVERED, DEAD, SEEN) -- of one that the store has lost
  redis.call('HSET', HOOK, 'fn', nonce, 'c', NOW, 'ss', secret .. ':0', 'n', '0')
  redis.call('ZADD', LIST, 0, scope .. '/' .. id)
  schedule_webhook(scope .. '/' .. id)
end
redis.call('HSET', HOOK, 'd', definition, 'u', NOW)
if on == '1' and was_on ~= '1' then
  redis.call('HSET', HOOK, 'e', '1', 'sn', digits(now - BEFORE_MS))
  redis.call('HDEL', HOOK, 'er', 'ea', 'fs')
end
emit_webhook(nonce ~= '' and 'webhook.created' or 'webhook.updated', scope, id)
if on == '' and was_on ~= '' then switch_off(scope, id, 'OPERATOR') end
return {OK}
