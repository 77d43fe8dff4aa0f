//go:build !linux

package load

import (
	"context"
	"syscall"
)

var bindLate func(network, address string, s syscall.RawConn) error

// DialLight opens n connections to host:port, whose sources do not wait.
func DialLight(ctx context.Context, address string, n int) (Generator, error) {
	return Dial(ctx, address, n)
}
