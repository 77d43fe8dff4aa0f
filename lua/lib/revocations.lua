-- Purpose: the list of revoked tokens, in one sorted set; score: until when a revocation applies, wall ms. Its version is the
--   negative score of the sentinel, which differs after each change, even in a store that was lost. Needs clock.
local REVOCATIONS = KEYS[1]

local function set_version(version) redis.call('ZADD', REVOCATIONS, string.format('%.0f', -version), '!') end

-- Returns the version, and creates the list if there is none.
local function version()
  local stored = tonumber(redis.call('ZSCORE', REVOCATIONS, '!'))
  if stored then return -stored end
  set_version(now)
  return now
end
