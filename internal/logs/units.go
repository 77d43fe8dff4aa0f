package logs

import (
	"log/slog"
)

// InMs is a slog.HandlerOptions.ReplaceAttr for logs that programs read: it converts a duration to a number of milliseconds, and adds the
// unit to its name.
func InMs(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Int64(a.Key+"Ms", a.Value.Duration().Milliseconds())
}
