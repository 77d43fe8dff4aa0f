//go:build !linux

package load

import "context"

// DialLight opens n connections to host:port, whose sources do not wait.
func DialLight(ctx context.Context, address string, n int) (Generator, error) {
	return Dial(ctx, address, n)
}
