-- Purpose: the reply codes of scripts about one task, which tracker/schema/codes.go has too.
local OK, MISMATCH, ENDED, TERMINAL, NOT_FOUND, EXISTS, REPEATED, REFUSED, KEY_KNOWN = 0, 1, 2, 3, 4, 5, 6, 7, 8
