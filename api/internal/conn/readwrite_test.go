package conn

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/bubble"
	"github.com/lubdub-io/lubdub/internal/shares"
)

// The memory of a body is reserved from its header until its answer begins: "100 Continue" is not an answer.
func TestABodyIsReservedUntilItsAnswer(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		const size = 1 << 20
		w := NewWatch(time.Minute, time.Minute, time.Minute, NewBudget(4*size, func() {}))
		c := w.add(near)
		defer c.Close()
		if err := Charge(c, shares.Holder{Tenant: "acme"}, size); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			text string
			held int64
		}{{Continue, size}, {"HTTP/1.1 200 OK\r\n\r\n", 0}} {
			if _, err := io.WriteString(c, step.text); err != nil {
				t.Fatal(err)
			}
			if got := w.bodies.Held(); got != step.held {
				t.Errorf("after %q %d bytes are reserved, want %d", step.text, got, step.held)
			}
		}
	})
}
