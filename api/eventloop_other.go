//go:build !linux

package api

import (
	"net"

	"github.com/valyala/fasthttp"
)

// onLoops says that there are no loops: they need epoll, so all is served as other requests are.
func (s *Server) onLoops(net.Listener) (gate net.Listener, ok bool, err error) {
	if !s.cfg.NoEventLoop {
		s.log.Info("no event loop here")
	}
	return nil, false, nil
}

func lend(net.Conn, fasthttp.ConnState) {}
