package api

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// If an event loop watches the connections, clients that have gone are found at once and are sent no further events; a client that
// has only shut its side still receives them.
func TestDisconnectedClientsAreDetectedAtOnce(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, l *live) {
		l.s.events.KeepAlive = time.Hour
		addr, viewer := l.listen(), l.control(roleViewer)
		open := func() (*net.TCPConn, *bufio.Scanner) {
			c := dialTo(t, addr)
			if _, err := fmt.Fprintf(c, "GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n",
				viewer); err != nil {
				t.Fatal(err)
			}
			return c, bufio.NewScanner(c)
		}
		await := func(lines *bufio.Scanner, what string) {
			t.Helper()
			for lines.Scan() {
				if strings.Contains(lines.Text(), what) {
					return
				}
			}
			t.Fatalf("the stream ended before %q: %v", what, lines.Err())
		}
		for range 20 {
			c, lines := open()
			await(lines, ": lubdub")
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		halfClosed, lines := open()
		await(lines, ": lubdub")
		if err := halfClosed.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		await(lines, ": keep-alive")
		until(t, func() bool { return l.s.events.Streams.Used() == 1 }, func() string {
			return fmt.Sprintf("%d streams are open, want one", l.s.events.Streams.Used())
		})
		l.create(`{"taskId":"t1"}`)
		await(lines, `"t1"`)
	})
}
