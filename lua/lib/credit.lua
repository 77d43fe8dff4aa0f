-- Purpose: how much time a shard has lost since somebody was heard. Needs clock and the key OUTAGES.
--#include lib/outage.lua

-- How much of what an outage lost came after shard time `since`, or nil when all of it was before. In its midst it is a
-- share, as of who was heard at the end of that ms: nobody is said to have been silent for longer than he was.
local function lost_after(since, L, lost, ran)
  if L < since or L == since and ran > 0 then return nil end
  return ran > 0 and math.floor(lost * math.min(1, (L - since - 1) / ran)) or lost
end

-- The outage at a place of the list, which all verdicts of a call ask for; before the first one is the sentinel.
local outages = {}
local function read_outage(i)
  local L, _, lost, ran = unpack_outage(redis.call('LINDEX', OUTAGES, i))
  outages[i] = {tonumber(L or -1), tonumber(lost or 0), tonumber(ran or 0)}
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
