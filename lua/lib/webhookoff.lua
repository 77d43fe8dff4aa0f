-- Purpose: switches a webhook off, and writes its events. Needs clock and webhook.
--#include lib/event.lua
local function tell_of_hook(type, scope, id, data) write_event(EVENTS, type, {scope = scope, subject = id}, data) end

local function switch_off(scope, id, reason)
  redis.call('HSET', HOOK, 'e', '', 'er', reason, 'ea', NOW)
  tell_of_hook('webhook.disabled', scope, id, '{"reason":"' .. reason .. '"}')
end
