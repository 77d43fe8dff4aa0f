package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/config"
)

// newLogger makes the logger that the configuration asks for.
func newLogger(w io.Writer, cfg *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.LogLevel)) // Load has checked it
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// redisLog takes what go-redis would otherwise write to standard error, in a form of its own. It repeats what the tracker says
// about an outage, for each connection.
type redisLog struct{ *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, args...))
}

// takeRedisLog is for commands that run a server; the setting is the whole process's.
func takeRedisLog(log *slog.Logger) { redis.SetLogger(redisLog{log}) }
