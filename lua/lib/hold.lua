-- Purpose: the hold of a lineage: <worker that an operator took offline>/<since when, wall ms>/<reason from the request>.

local function pack_hold(worker, since, reason) return worker .. '/' .. string.format('%.0f', since) .. '/' .. reason end

-- Returns the three parts; nothing if there is no hold.
local function unpack_hold(packed) return string.match(packed or '', '^([^/]*)/([^/]*)/(.*)$') end
