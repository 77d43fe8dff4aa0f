//go:build long

package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/shares"
)

// What streams of one viewer cost Redis that go through all that has happened, with a filter that nothing passes.
func TestWhatStreamsFromAnOldCursorCost(t *testing.T) {
	store, _ := redistest.Own(t)
	l := newLive(t, store, nil)
	l.s.events.Streams = shares.NewPool(4096)
	l.pass(0)
	const perShard, streams = 40_000, 1024
	ctx := context.Background()
	l.create(`{"taskId":"t1"}`)
	for shard := range 4 {
		key := fmt.Sprintf("lubdub:{%d}:events", shard)
		pipe := l.store.Client.Pipeline()
		for i := range perShard {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"type", "task.created", "time", "1768471200000",
				"scope", "acme/prod", "subject", fmt.Sprint("t", i), "attempt", "1", "worker", "", "by", "user", "data", "{}"}})
			if i%1000 == 999 {
				if _, err := pipe.Exec(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	other := l.controlFor(roleDispatcher, "other", "prod")
	for range 40 {
		l.do("POST", "/v1/tasks", other, "{}").want(201)
	}
	for i := range streams {
		c, err := l.ln.Dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		viewer := l.control(roleViewer)
		go func(c net.Conn) {
			fmt.Fprintf(c, "GET /v1/events?type=worker.late&after=2020-01-01T00:00:%02dZ HTTP/1.1\r\nHost: x\r\n"+
				"Accept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", i%60, viewer)
			_, _ = io.Copy(io.Discard, c)
		}(c)
	}
	until(t, func() bool { return l.s.events.Streams.Used() == streams }, func() string { return "not all streams have begun" })
	began, before := time.Now(), redisCPU(t, l.store.Client)
	var slowest time.Duration
	pages, refused := 0, 0
	for time.Since(began) < 10*time.Second {
		start := time.Now()
		pages++
		if l.do("GET", "/v1/events?order=desc&pageSize=10", other, "").status != 200 {
			refused++
		}
		slowest = max(slowest, time.Since(start))
		time.Sleep(100 * time.Millisecond)
	}
	used := redisCPU(t, l.store.Client) - before
	t.Logf("%d streams: %.1f %% of a core of Redis; another tenant's slowest page took %v", streams,
		100*used.Seconds()/time.Since(began).Seconds(), slowest)
}

// redisCPU returns the CPU time that Redis has used.
func redisCPU(t *testing.T, c redis.UniversalClient) (used time.Duration) {
	t.Helper()
	info, err := c.Info(context.Background(), "cpu").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		var seconds float64
		for _, field := range []string{"used_cpu_user:", "used_cpu_sys:"} {
			if text, ok := strings.CutPrefix(line, field); ok {
				_, _ = fmt.Sscan(text, &seconds)
				used += time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return used
}
