-- Purpose: switches a webhook off, and writes its events. Needs clock and webhook.
--#include lib/event.lua
local function emit_webhook(type, scope, id, data) write_event(EVENTS, type, {scope = scope, subject = id}, data) end

local function switch_off(scope, id, reason)
  redis.call('HSET', HOOK, 'e', '', 'er', reason, 'ea', NOW)
  emit_webhook('webhook.disabled', scope, id, '{"reason":"' .. reason .. '"}')
end
