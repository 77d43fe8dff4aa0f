-- Purpose: how much time a shard has lost since a heartbeat. Needs clock and the key OUTAGES.
--#include lib/outage.lua

-- How much of an outage's lost time came after shard time `since`, or nil if all of it was before. Within an outage it is a
-- share, as of a heartbeat at the end of that ms, so that no reported silence is too long.
local function lost_after(since, L, lost, ran)
  if L < since or L == since and ran > 0 then return nil end
  return ran > 0 and math.floor(lost * math.min(1, (L - since - 1) / ran)) or lost
end

-- The outage at a position of the list, which all verdicts of a call read; the sentinel precedes the first one.
local outages = {}
local function read_outage(i)
  local at, _, lost, ran = unpack_outage(redis.call('LINDEX', OUTAGES, i))
  outages[i] = {tonumber(at or -1), tonumber(lost or 0), tonumber(ran or 0)}
  return outages[i]
end

-- Wall ms since shard time `since` in which shard time did not run.
local function outage_credit(since)
  local credit, i = 0, 0
  if unfolding then
    for _, piece in ipairs(unfolding) do credit = credit + (lost_after(since, piece[1], piece[2], piece[3]) or 0) end
  end
  while true do
    local outage = outages[i] or read_outage(i)
    local lost = lost_after(since, outage[1], outage[2], outage[3])
    if not lost then return credit end
    credit, i = credit + lost, i + 1
  end
end
