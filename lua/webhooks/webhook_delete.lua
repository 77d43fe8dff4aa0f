-- Purpose: deletes a webhook with all its deliveries.
-- Guarantees: a repeat finds nothing and changes nothing.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 scope, 2 id
-- Reply: {OK or NOT_FOUND}
-- Cost: O(log n), one event; Redis frees the memory in the background
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/webhook.lua
--#include lib/webhookoff.lua
local name = ARGV[1] .. '/' .. ARGV[2]
local was = redis.call('UNLINK', HOOK)
redis.call('UNLINK', QUEUE, FLIGHT, KEPT, ABOUT, BODIES, DELIVERED, DEAD, SEEN)
redis.call('ZREM', LIST, name)
redis.call('ZREM', HOOK_DUE, name)
if was == 0 then return {NOT_FOUND} end
emit_webhook('webhook.deleted', ARGV[1], ARGV[2])
return {OK}
