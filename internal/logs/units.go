package logs

import (
	"log/slog"
)

// InMs is for slog.HandlerOptions.ReplaceAttr of logs that programs read: a duration is a number of milliseconds there, and its
// name says so.
func InMs(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Int64(a.Key+"Ms", a.Value.Duration().Milliseconds())
}
