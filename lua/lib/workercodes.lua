-- Purpose: further answers of scripts about a worker, mirrored once in Go (tracker/model/workercodes.go).
local OFFLINE, DRAINING = 20, 21
