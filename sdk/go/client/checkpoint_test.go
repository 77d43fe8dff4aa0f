//go:build go1.25

package client_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// If more checkpoints are set than a heartbeat has room for, each attempt has its turn.
func TestEachAttemptSendsCheckpoints(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := workertest.New(t, workertest.MachineTime())
		c, err := client.New(s.URL(), s.Options()...)
		if err != nil {
			t.Fatal(err)
		}
		var all []*client.Attempt
		for i := range 100 {
			e := s.Push(v1.CreateTaskRequest{TaskID: fmt.Sprintf("t%d", i), HeartbeatTimeoutMs: ms(time.Minute)})
			_, a, err := c.Track(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, a)
		}
		large := strings.Repeat("x", 15<<10)
		for i := range 100 {
			for _, a := range all {
				_ = a.Checkpoint(fmt.Sprint(i, large))
			}
			time.Sleep(time.Second)
		}
		for _, a := range all {
			if len(s.Task(a.TaskID()).Details) == 0 {
				t.Errorf("no checkpoint of %s was sent", a.TaskID())
			}
			a.Abandon()
		}
		c.Close()
	})
}
