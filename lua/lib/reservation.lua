-- Purpose: a reservation of places at a worker, as an entry of its set: <name>:<places>.
local function pack_reservation(name, places) return name .. ':' .. places end

-- Returns its name and its places as strings.
local function unpack_reservation(entry) return string.match(entry, '^(.*):(%d+)$') end
