package events

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/events"
)

// What a listener has not taken yet is not copied for it.
func TestEventsAreNotCopiedForEachListener(t *testing.T) {
	published := make([]*events.Message, 200)
	for i := range published {
		published[i] = &events.Message{Cursor: strconv.Itoa(i), JSON: []byte(`{"id":` + strings.Repeat("1", i) + `}`)}
	}
	var want strings.Builder
	for _, e := range published {
		fmt.Fprintf(&want, "id: %s\ndata: %s\n\n", e.Cursor, e.JSON)
	}
	for _, size := range []int{1, 7, 4096} {
		s, p, got := &eventStream{last: true}, make([]byte, size), make([]byte, 0, want.Len())
		read := func() {
			s.events, got = published, got[:0]
			for {
				n, err := s.Read(p)
				if got = append(got, p[:n]...); err != nil {
					return
				}
			}
		}
		allocs := testing.AllocsPerRun(1, read)
		for i := 0; allocs > 1 && i < 200; i++ { // what the whole process allocates is counted, and others may be at work
			allocs = min(allocs, testing.AllocsPerRun(1, read))
		}
		if string(got) != want.String() {
			t.Errorf("reads of %d bytes produce a different text", size)
		}
		if allocs > 1 {
			t.Errorf("%.0f allocations in reads of %d bytes", allocs, size)
		}
	}
}
