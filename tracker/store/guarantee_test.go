package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// WAITAOF, of Redis 7.2, replies with two numbers; WAIT with one. A failed write confirms nothing.
func TestWaitingReadsItsAnswer(t *testing.T) {
	s := &durability{opts: Options{Durability: Fsync}, deadlines: deadlines{time.Second}}
	synced := s.newGuarantee(true)
	s.opts = Options{Durability: Replicated, Timeout: time.Second, DurableReplicas: 2}
	replicated := s.newGuarantee(true)
	for _, c := range []struct {
		g     guarantee
		reply any
		write error
		err   error
		ok    bool
	}{
		{g: synced, reply: []any{int64(1), int64(0)}, ok: true},
		{g: synced, reply: []any{int64(0), int64(3)}},
		{g: synced, reply: []any{}},
		{g: synced, err: errors.New("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")},
		{g: replicated, reply: int64(2), ok: true},
		{g: replicated, reply: int64(3), ok: true},
		{g: replicated, reply: int64(1)},
		{g: replicated, reply: int64(2), write: errors.New("READONLY You can't write against a read only replica.")},
	} {
		cmds := c.g.commands(context.Background(), schema.NewShardKeys(3))
		if name := cmds[0].Name(); name != "set" || cmds[0].Args()[1] != "lubdub:{3}:confirmed" {
			t.Fatalf("it begins with %v", cmds[0].Args())
		}
		set(cmds[0], "OK", c.write)
		set(cmds[1], c.reply, c.err)
		if err := c.g.confirmed(cmds); (err == nil) != c.ok {
			t.Errorf("%s answered %v, the write %v, it %v: %v", cmds[1].Name(), c.reply, c.write, c.err, err)
		}
	}
}

func set(cmd *redis.Cmd, v any, err error) {
	cmd.SetVal(v)
	cmd.SetErr(err)
}

func TestAtLeast(t *testing.T) {
	for version, want := range map[string]bool{"7.0.15": false, "7.2.0": true, "7.10.1": true, "8.0": true, "6.9": false, "255.255.255": true,
		"": false} {
		if atLeast(version, 7, 2) != want {
			t.Errorf("%q", version)
		}
	}
}
