package api

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// Whatever serves connections, the kernel keeps little for a client that does not read.
func TestLittleIsBufferedForAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for front, configure := range fronts {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, configure)
			ln, err := Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = e.s.Serve(ln) }() // until the server's Shutdown
			a := (&attacker{e: &hostileServer{&testServer{e, ln.Addr().String()}}}).open()
			a.neverRead("GET /ui/app.js HTTP/1.1\nHost: x\n\n")
			buffered := 0
			until(t, func() bool { buffered = unsent(t, ln.Addr(), a.LocalAddr()); return buffered >= 1<<10 },
				func() string { return fmt.Sprintf("%d bytes are kept for it", buffered) })
			if buffered > 1<<20 {
				t.Errorf("%d bytes are kept for it", buffered)
			}
		})
	}
}

// unsent returns how many bytes the kernel keeps on a connection between two addresses of 127.0.0.1 that the far one has not acknowledged.
func unsent(t *testing.T, near, far net.Addr) (bytes int) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	port := func(a net.Addr) string { return fmt.Sprintf("0100007F:%04X", a.(*net.TCPAddr).Port) }
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); f[1] == port(near) && f[2] == port(far) {
			if _, err := fmt.Sscanf(f[4], "%X:", &bytes); err != nil {
				t.Fatal(err)
			}
			return bytes
		}
	}
	t.Fatal("the kernel does not know the connection")
	return 0
}
