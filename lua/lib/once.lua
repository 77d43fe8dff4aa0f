-- Purpose: for what must happen once even if its script runs again after a lost reply: each act has its own key.
local REMEMBERED_S = 60 -- Lubdub itself repeats no request for this long

local function first_time(act) return redis.call('SET', act, '', 'NX', 'EX', REMEMBERED_S) end
