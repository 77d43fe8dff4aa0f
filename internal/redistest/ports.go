package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come in blocks, each of which belongs to one test binary for as long as that lives: others are at work beside it, and
// must not take the port of a server that is down just now. All of them, and those 10,000 above that Cluster nodes use, lie below
// those that systems hand out for outgoing connections.
const (
	firstPort  = 11_000
	blockPorts = 100
	blocks     = 100
)

var ports struct {
	mu   sync.Mutex
	free []int
	held []net.Listener // on the first port of each block of ours, which says so to the others
}

// FreeAddr returns a loopback address that nothing listens on, and nothing will until this test binary has ended: what listens there
// may stop and come back.
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

// giveBack lets another server have the port of one that has gone, after all those that nobody has had.
func giveBack(addr string) {
	_, text, _ := net.SplitHostPort(addr)
	port, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	ports.mu.Lock()
	defer ports.mu.Unlock()
	ports.free = append(ports.free, port)
}
