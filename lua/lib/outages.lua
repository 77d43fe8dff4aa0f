-- Purpose: reports the time that a shard lost (lib/outage.lua). Needs clock, step and event.
local MAX_REPORTED = 20 -- events a call, for each shard

-- Writes events about outages that are over, oldest first.
local function report_outages(clock, outages, events)
  local c = redis.call('HMGET', clock, 'o', 'h')
  local unreported = tonumber(c[1]) or 0
  if unreported == 0 then return end
  local open = (select(4, unpack_slowed(c[2])) or '') ~= '' and 1 or 0 -- the newest is not over
  local last = math.max(0, unreported - MAX_REPORTED)
  for i = unreported - 1, last, -1 do
    local _, from, lost = unpack_outage(redis.call('LINDEX', outages, i + open))
    if from then
      write_event(events, 'system.outage_credited', {}, '{"shard":' .. string.match(clock, '{(%d+)}') .. ',"fromMs":'
        .. from .. ',"outageCreditMs":' .. lost .. '}')
    end
  end
  redis.call('HSET', clock, 'o', last)
end
