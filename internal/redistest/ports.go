package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come in blocks, each of which belongs to one test binary for as long as it lives: other test binaries run concurrently, and
// must not take the port of a server that is down for the moment. All blocks, and the ports 10,000 above that Cluster nodes use, are
// below the range that systems use for outgoing connections.
const (
	firstPort  = 11_000
	blockPorts = 100
	blocks     = 100
)

var ports struct {
	mu   sync.Mutex
	free []int
	held []net.Listener // on the first port of each of our blocks, which marks the block as taken
}

// FreeAddr returns a loopback address that is free, and that no other process will use until this test binary has ended: a server
// there may stop and restart.
func FreeAddr() string {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for {
		if len(ports.free) == 0 {
			takeBlock()
		}
		addr := loopback(ports.free[0])
		ports.free = ports.free[1:]
		if ln, err := net.Listen("tcp", addr); err == nil {
			_ = ln.Close()
			return addr
		}
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func takeBlock() {
	for _, i := range rand.Perm(blocks) {
		first := firstPort + i*blockPorts
		ln, err := net.Listen("tcp", loopback(first))
		if err != nil {
			continue
		}
		ports.held = append(ports.held, ln)
		for port := first + 1; port < first+blockPorts; port++ {
			ports.free = append(ports.free, port)
		}
		return
	}
	panic("redistest: no ports are left from 11000 to 20999: what listens there?")
}

// releasePort makes the port of a server that has gone available again, after all ports that were never used.
func releasePort(addr string) {
	_, text, _ := net.SplitHostPort(addr)
	port, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	ports.mu.Lock()
	defer ports.mu.Unlock()
	ports.free = append(ports.free, port)
}
