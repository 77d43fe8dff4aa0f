-- Purpose: the list of tokens that were taken back, in one sorted set; score: until when a revocation stands, wall ms.
-- Its version is the sentinel's score below zero, which differs after each change, also in a store that was lost. Needs
-- clock.
local REVOCATIONS = KEYS[1]

local function set_version(version) redis.call('ZADD', REVOCATIONS, string.format('%.0f', -version), '!') end

-- Returns the version, having made the list where there is none.
local function version()
  local stored = tonumber(redis.call('ZSCORE', REVOCATIONS, '!'))
  if stored then return -stored end
  set_version(now)
  return now
end
