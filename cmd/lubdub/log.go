package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/logs"
)

// newLogger creates the logger according to the configuration.
func newLogger(w io.Writer, cfg *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.LogLevel)) // Load has checked it
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: logs.InMs}))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// announce writes the line that reports that the process is up, at any log level: as plain text, or as a line of a JSON log.
func (p *process) announce(w io.Writer) {
	if p.cfg.LogFormat != "json" {
		fmt.Fprintln(w, p.line())
		return
	}
	slog.New(slog.NewJSONHandler(w, nil)).Info(p.line(), "version", version, "api", p.apiURL(), "admin", p.adminURL(),
		"roles", p.cfg.Roles.String(), "redis", config.RedactURL(p.cfg.Redis))
}

// redisLog logs what go-redis would otherwise write to standard error in its own format. It repeats what the tracker logs about an
// outage, for each connection.
type redisLog struct{ *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, args...))
}

// takeRedisLog is for commands that run a server; the setting is process-wide.
func takeRedisLog(log *slog.Logger) { redis.SetLogger(redisLog{log}) }
