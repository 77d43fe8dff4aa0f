-- Purpose: a change of the primary counts as a heartbeat of every live member. A promoted replica, or a restarted server, may
--   have lost the last heartbeats that its predecessor accepted, so its scores may be too old. Needs clock.

-- The replication id of the server that runs this script: a promotion and a restart each give it a new one. '' if it has none.
local function replication_id()
  local info = redis.pcall('INFO', 'replication')
  return type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
end

-- Shard time of the latest change of primary. 0: none is known.
local changed = 0

-- The clock has in p: replication id, shard time of the change, and since when (wall ms) it is in progress or ''.
local function pack_primary(id, at, since)
  return id .. '\t' .. string.format('%.0f', at) .. '\t' .. (since and string.format('%.0f', since) or '')
end

-- Returns its parts as strings; nothing if there are none.
local function unpack_primary(packed) return string.match(packed or '', '^(%x*)\t(%d+)\t(%d*)$') end

-- Records the first primary of a new shard, which cannot have changed before.
local function note_first(clock) redis.call('HSETNX', clock, 'p', pack_primary(replication_id(), 0)) end

-- Reads `changed`. On a primary that no sweeper has recorded yet the change is now, or later.
local function read_change(clock)
  local id, at = unpack_primary(redis.call('HGET', clock, 'p'))
  changed = not id and 0 or id == replication_id() and tonumber(at) or math.huge
end

-- Records a change. While it is in progress a replica of Lubdub may still write to the old primary, which accepts its
-- heartbeats. It is over when every replica that kept the shard's time has done so on this primary for SETTLED_MS, in which
-- its other connections move there too, or after IN_PROGRESS_MS.
local SETTLED_MS, IN_PROGRESS_MS = 500, 2000
local function note_change(clock, replicas, L, own)
  local id, at, since = unpack_primary(redis.call('HGET', clock, 'p'))
  at, since = tonumber(at), tonumber(since)
  if id == own and not since then
    changed = at
    return false
  end
  if not id then
    at = L -- the shard is older than this release: its primary may have changed before without a record
  elseif id ~= own then
    at, since = L, now
  else
    at = L
    local settled = string.format('%.0f', since + SETTLED_MS)
    local behind = redis.call('ZCOUNT', replicas, '-inf', '(' .. settled) + redis.call('ZCOUNT', replicas, '(' .. now, '+inf')
    if behind == 0 or now < since or now - since > IN_PROGRESS_MS then since = nil end
  end
  redis.call('HSET', clock, 'p', pack_primary(own, at, since))
  changed = at
  return true
end

-- Since when a member is silent, in shard time: since its last stored heartbeat or the change, and never more than one timeout
-- after the heartbeat, so that a dead member is found even while the primary changes repeatedly.
local function silent_since(score, timeout)
  return math.max(score, math.min(changed, score + timeout + MAX_STEP_MS))
end
