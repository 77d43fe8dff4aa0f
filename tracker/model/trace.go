package model

import "strings"

// traceparentBytes is the length of version 00: 00-<trace id>-<parent id>-<flags>.
const traceparentBytes = 55

// ParseTraceparent converts a W3C traceparent to version 00, the version that Lubdub passes on; ok is false for one that must be ignored.
// From an unknown newer version it takes the IDs and the sampled flag.
func ParseTraceparent(s string) (traceparent string, ok bool) {
	if len(s) < traceparentBytes || len(s) > 512 || len(s) > traceparentBytes && s[traceparentBytes] != '-' {
		return "", false
	}
	version, rest := s[:2], s[2:traceparentBytes]
	parts := strings.Split(rest, "-")
	if len(parts) != 4 || parts[0] != "" || len(parts[1]) != 32 || len(parts[2]) != 16 || !hexadecimal(version) || version == "ff" {
		return "", false
	}
	for _, id := range parts[1:3] {
		if !hexadecimal(id) || strings.Trim(id, "0") == "" {
			return "", false
		}
	}
	flags := parts[3]
	switch {
	case !hexadecimal(flags), version == "00" && len(s) > traceparentBytes:
		return "", false
	case version == "00":
		return s, true
	case strings.IndexByte("13579bdf", flags[1]) >= 0:
		flags = "01"
	default:
		flags = "00"
	}
	return "00-" + parts[1] + "-" + parts[2] + "-" + flags, true
}

func hexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
