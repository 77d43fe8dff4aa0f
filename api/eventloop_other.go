//go:build !linux

package api

import (
	"net"

	"github.com/valyala/fasthttp"
)

// onLoops returns ok = false: event loops need epoll, so goroutines serve all connections.
func (s *Server) onLoops(net.Listener) (gate net.Listener, ok bool, err error) {
	if !s.cfg.NoEventLoop {
		s.log.Info("no event loop here")
	}
	return nil, false, nil
}

func trackIdle(net.Conn, fasthttp.ConnState) {}
