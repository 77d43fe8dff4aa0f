-- Purpose: gives a webhook a new secret; its previous ones stay valid for a while.
-- Guarantees: setting the same secret again changes nothing.
-- KEYS: 1 lubdub:{shard}:events, 2 …:webhooks, 3 …:hookdue, 4 …:webhook:<scope>/<id>, then …:hookqueue:, 6 …:hookflight:,
--   7 …:hookkept:, 8 …:hookabout:, 9 …:hookbodies:, 10 …:hookdelivered:, 11 …:hookdead:, 12 …:hookseen: of the same
-- ARGV: 1 scope, 2 id, 3 secret, 4 for how many ms the previous one stays valid, 5 how many old ones stay valid at most
-- Reply: {OK or NOT_FOUND}
-- Cost: O(1), one event
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/webhook.lua
--#include lib/webhookoff.lua
local had = redis.call('HGET', HOOK, 'ss')
if not had then return {NOT_FOUND} end
local secrets = {ARGV[3] .. ':0'}
for secret, till in string.gmatch(had, '(%S+):(%d+)') do
  if #secrets == 1 and secret == ARGV[3] then return {OK} end
  if till == '0' then till = digits(now + ARGV[4]) end
  if tonumber(till) > now and #secrets <= tonumber(ARGV[5]) then secrets[#secrets + 1] = secret .. ':' .. till end
end
redis.call('HSET', HOOK, 'ss', table.concat(secrets, ' '), 'u', NOW)
emit_webhook('webhook.updated', ARGV[1], ARGV[2])
return {OK}
