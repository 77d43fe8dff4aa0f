package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// connection is a TCP connection that closes when the context of the request that uses it ends. HTTP and TLS may disagree about which
// of them closes it, and may wait for the peer first.
type connection struct {
	net.Conn
	mu   sync.Mutex
	user context.Context
}

// diallingKey is the key of a context value: the context that ends when the request for which a connection is dialled has failed.
// The HTTP client itself continues to dial then, in case another request needs the connection.
type diallingKey struct{}

// schemeKey is the key of a context value: the scheme of the URL for which a connection is dialled.
type schemeKey struct{}

// connectionOf returns the connection below TLS.
func connectionOf(c net.Conn) *connection {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	return c.(*connection)
}

// closeAfter closes the connection when ctx ends, unless keep was called or another request uses it by then.
func (c *connection) closeAfter(ctx context.Context) (keep func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user = ctx
	return context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.user == ctx {
			_ = c.Close()
		}
	})
}
