package api

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/internal/evloop"
)

// onLoops serves the connections of ln on event loops, which hand over to fasthttp those whose request it must answer. It returns the
// listener that fasthttp accepts from; ok is false if ln cannot be served so.
func (s *Server) onLoops(ln net.Listener) (gate net.Listener, ok bool, err error) {
	tcp, ok := ln.(*net.TCPListener)
	if !ok || s.cfg.NoEventLoop {
		return nil, false, nil
	}
	front, err := evloop.Listen(tcp, evloop.Config{
		Loops: eventLoops(), Pace: beatPace, ShareFrom: s.cfg.answersShared(), Handler: s.beats.NewLoop,
		Serve: func(c net.Conn) { _ = s.http.ServeConn(c) },
		Watch: s.watch, Bound: s.bound(s.cfg.MaxConns, reserveOf(s.cfg.MaxConns), false),
		ReadTimeout: s.cfg.ReadTimeout, WriteTimeout: s.cfg.WriteTimeout, IdleTimeout: s.cfg.IdleTimeout,
		MaxRequest: conn.SmallBody, Panicked: s.loopPanicked,
	})
	if err != nil {
		return nil, false, err
	}
	context.AfterFunc(s.gaveUp, front.GiveUp)
	return front.Gate(), true, nil
}

// beatPace is the minimum time between two turns of a busy loop, so that one turn serves many heartbeats. It adds up to its own length
// to each heartbeat's latency; an idle loop adds none.
const beatPace = time.Millisecond

// eventLoops returns how many loops a server runs. Heartbeats that one loop would send in one batch, two loops send in two, so more than
// one pays only with many cores.
func eventLoops() int { return evloop.LoopsFor(runtime.GOMAXPROCS(0)) }

// answersShared returns the number of answers from which a second goroutine helps a loop to write: fewer are not worth waking another core.
func (c *Config) answersShared() int {
	switch {
	case c.shareFrom > 0:
		return c.shareFrom
	case runtime.GOMAXPROCS(0) > eventLoops():
		return 64
	}
	return 0
}

// trackIdle marks a connection that a loop has handed over as being between two requests.
func trackIdle(c net.Conn, state fasthttp.ConnState) {
	if state == fasthttp.StateIdle || state == fasthttp.StateActive {
		conn.Idle(c, state == fasthttp.StateIdle)
	}
}

func (s *Server) loopPanicked(p any, stack []byte) {
	s.api.Metrics.Panics.Inc()
	s.log.LogAttrs(context.Background(), slog.LevelError, "panic in the event loop", slog.Any("panic", p), slog.String("stack", string(stack)))
}
