-- Purpose: what is done once though its script may run again, since its reply was lost: an act has a key of its own.
local REMEMBERED_S = 60 -- no request is repeated by Lubdub itself for as long

local function first_time(act) return redis.call('SET', act, '', 'NX', 'EX', REMEMBERED_S) end
