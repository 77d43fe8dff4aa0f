package api

import (
	"context"
	"net"
)

// Listen returns a TCP listener for Serve. It limits how much the kernel buffers for a client that does not read.
func Listen(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: limitUnsent}
	config.SetMultipathTCP(false) // with MPTCP, Linux would not pass the listener's options on to connections
	return config.Listen(context.Background(), "tcp", address)
}
