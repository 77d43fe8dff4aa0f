package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// beater sends one beat after the other on a connection, and knows how the last ones were answered.
type beater struct {
	answered [2]atomic.Int64 // with 200 and with 503
}

func (b *beater) run(t *testing.T, addr, beat string, stop <-chan struct{}) {
	c := dialTo(t, addr)
	in := bufio.NewReader(c)
	for {
		select {
		case <-stop:
			return
		default:
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(c, beat); err != nil {
			t.Error(err)
			return
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(res.Body)
		switch {
		case err == nil && res.StatusCode == 200:
			b.answered[0].Add(1)
		case err == nil && res.StatusCode == 503 && res.Header.Get("Retry-After") != "":
			b.answered[1].Add(1)
		default:
			t.Errorf("%v %s %s", err, res.Status, body)
			return
		}
	}
}

// Redis freezes and dies during the loop's flushes: each beat gets one answer, 503 and never a verdict, on a connection that stays open;
// everything recovers automatically when Redis is back.
func TestRedisAwayInTheMiddleOfTheLoopsFlushes(t *testing.T) {
	t.Parallel()
	store := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	var tr *tracker.Tracker
	e := newEnv(t, func(c *Config) {
		var err error
		o := tracker.Options{RedisURL: store.URL(), Logger: c.Logger, RedisTimeout: 2 * time.Second}
		if tr, err = tracker.Open(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close(context.Background()) })
		c.Services, c.Now = ServicesOf(tr), nil
	})
	e.readClock = time.Now
	e.onLoop()
	addr := e.listen()
	beaters := make([]beater, 32)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range beaters {
		var task v1.TaskEnvelope
		create := fmt.Sprintf(`{"taskId":"t%d","heartbeatTimeoutMs":3600000}`, i)
		e.do("POST", "/v1/tasks", e.control(roleDispatcher), create).want(201).into(&task)
		of := &twins{tokens: map[string]string{task.TaskID: task.TaskToken}}
		all.Go(func() { beaters[i].run(t, addr, of.beat(task.TaskID, `{"attempt":1,"progressPct":5}`), stop) })
	}
	defer all.Wait()
	defer close(stop)
	await := func(what string, kind int) {
		t.Helper()
		var before [32]int64
		for i := range beaters {
			before[i] = beaters[i].answered[kind].Load()
		}
		until(t, func() bool {
			for i := range beaters {
				if beaters[i].answered[kind].Load() < before[i]+2 {
					return t.Failed()
				}
			}
			return true
		}, func() string { return what + ": some have no such answer" })
	}
	await("before", 0)
	for _, outage := range []struct {
		name        string
		begin, over func() error
	}{
		{"frozen", store.Freeze, store.Thaw},
		{"killed", func() error { store.Kill(); return nil }, func() error { return store.Restart() }},
	} {
		if err := outage.begin(); err != nil {
			t.Fatal(err)
		}
		await(outage.name, 1)
		if err := outage.over(); err != nil {
			t.Fatal(err)
		}
		await(outage.name+" and back", 0)
	}
	if n := e.s.api.InFlight(); n > int64(len(beaters)) {
		t.Errorf("%d in flight", n)
	}
}
