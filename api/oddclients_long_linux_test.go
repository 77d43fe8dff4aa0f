//go:build long

package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// oddities are what clients do that should not, with their own heartbeats.
var oddities = map[string]func(c *net.TCPConn, beat string){
	"half-closed": func(c *net.TCPConn, beat string) {
		_, _ = io.WriteString(c, beat)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	},
	"a byte at a time": func(c *net.TCPConn, beat string) {
		for i := range len(beat) {
			if _, err := c.Write([]byte{beat[i]}); err != nil {
				return
			}
		}
		_, _ = c.Read(make([]byte, 1))
	},
	"reads nothing": func(c *net.TCPConn, beat string) {
		_ = c.SetReadBuffer(4 << 10)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // the server stops reading, or closes it
		_, _ = io.WriteString(c, strings.Repeat(beat, 10_000))
		_ = c.SetLinger(0)
	},
	"far ahead, then reads": func(c *net.TCPConn, beat string) {
		go func() {
			_, _ = io.WriteString(c, strings.Repeat(beat, 200))
			_ = c.CloseWrite()
		}()
		_, _ = io.Copy(io.Discard, c)
	},
	"reset in the middle": func(c *net.TCPConn, beat string) {
		_, _ = io.WriteString(c, beat[:len(beat)/2])
		_ = c.SetLinger(0)
	},
	"reset before the answer": func(c *net.TCPConn, beat string) {
		_, _ = io.WriteString(c, strings.Repeat(beat, 3))
		_ = c.SetLinger(0)
	},
	"gone in the middle": func(c *net.TCPConn, beat string) {
		_, _ = io.WriteString(c, beat+beat[:len(beat)-1])
	},
	"other calls between": func(c *net.TCPConn, beat string) {
		_, _ = io.WriteString(c, beat+"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"+beat+"\x00\x01")
		_, _ = io.Copy(io.Discard, c)
	},
}

// crowd runs odd clients, and restarts each one that ends, until stop is closed.
func crowd(addr, beat string, of int, stop <-chan struct{}, all *sync.WaitGroup) {
	for _, does := range oddities {
		for range of {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if c, err := net.Dial("tcp", addr); err == nil {
						_ = c.SetDeadline(time.Now().Add(patience))
						does(c.(*net.TCPConn), beat)
						_ = c.Close()
					}
				}
			})
		}
	}
}

// faithful sends numbered beats for a task and knows the last one that was acknowledged.
type faithful struct {
	task                v1.TaskEnvelope
	acknowledged, tried atomic.Int64
	refused             atomic.Int64
}

func (f *faithful) run(t *testing.T, addr string, stop <-chan struct{}) {
	of := &twins{tokens: map[string]string{f.task.TaskID: f.task.TaskToken}}
	c := dialTo(t, addr)
	in := bufio.NewReader(c)
	for n := int64(1); ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		f.tried.Store(n)
		_, err := io.WriteString(c, of.beat(f.task.TaskID, fmt.Sprintf(`{"attempt":1,"message":"%d"}`, n)))
		if err != nil {
			t.Error(err)
			return
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		switch res.StatusCode {
		case 200:
			f.acknowledged.Store(n)
		case 503:
			f.refused.Add(1)
		default:
			t.Errorf("beat %d: %s", n, res.Status)
			return
		}
	}
}

// TestLongOddClients: odd clients come and go while Redis freezes and dies, with the loop and without it. A well-behaved client gets one
// response to each beat and never a verdict, each acknowledged beat is stored in Redis, and in the end nothing is left over.
func TestLongOddClients(t *testing.T) {
	t.Parallel()
	for _, loop := range []bool{true, false} {
		t.Run(fmt.Sprintf("loop %t", loop), func(t *testing.T) {
			t.Parallel()
			oddClientsDuringOutages(t, loop)
		})
	}
}

func oddClientsDuringOutages(t *testing.T, loop bool) {
	store := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	e := newEnv(t, func(c *Config) {
		o := tracker.Options{RedisURL: store.URL(), Logger: c.Logger, RedisTimeout: time.Second}
		tr, err := tracker.Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close(context.Background()) })
		c.Services, c.Now, c.NoEventLoop, c.WriteTimeout = ServicesOf(tr), nil, !loop, 2*time.Second
	})
	e.readClock = time.Now
	addr := e.listen()
	dispatcher := e.control(roleDispatcher)
	create := func(id string) (task v1.TaskEnvelope) {
		e.do("POST", "/v1/tasks", dispatcher, fmt.Sprintf(`{"taskId":%q,"heartbeatTimeoutMs":3600000}`, id)).want(201).into(&task)
		return task
	}
	var all sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); all.Wait() })
	defer end()
	beaters := make([]faithful, 8)
	for i := range beaters {
		f := &beaters[i]
		f.task = create(fmt.Sprint("t", i))
		all.Go(func() { f.run(t, addr, stop) })
	}
	odd := create("odd")
	of := &twins{tokens: map[string]string{"odd": odd.TaskToken}}
	crowd(addr, of.beat("odd", `{"attempt":1,"message":"odd"}`), 4, stop, &all)

	more := func(what string, count func(*faithful) int64) {
		t.Helper()
		for i := range beaters {
			before := count(&beaters[i])
			until(t, func() bool { return count(&beaters[i]) >= before+2 || t.Failed() }, func() string {
				return what + ": a client has no such answers"
			})
		}
	}
	acknowledged := func(f *faithful) int64 { return f.acknowledged.Load() }
	refused := func(f *faithful) int64 { return f.refused.Load() }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	more("before", acknowledged)
	must(store.Freeze())
	more("frozen", refused)
	must(store.Thaw())
	more("thawed", acknowledged)
	store.Kill()
	more("killed", refused)
	must(store.Restart())
	more("restarted", acknowledged)
	end()
	for i := range beaters {
		f := &beaters[i]
		var task v1.Task
		e.do("GET", "/v1/tasks/"+f.task.TaskID, dispatcher, "").want(200).into(&task)
		var n int64
		_, _ = fmt.Sscanf(string(task.Message), `"%d"`, &n)
		if last := f.acknowledged.Load(); n < last || n > f.tried.Load() {
			t.Errorf("%s: beat %d was acknowledged, %d is stored in Redis", f.task.TaskID, last, n)
		}
	}
	e.hangUp()
	left := func() string {
		return fmt.Sprintf("%d connections, %d beats in flight, %d bytes of bodies", e.open(), e.s.api.InFlight(), e.s.bodies.Held())
	}
	const nothing = "0 connections, 0 beats in flight, 0 bytes of bodies"
	until(t, func() bool { return left() == nothing }, func() string { return "left: " + left() })
}
