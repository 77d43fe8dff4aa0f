//go:build go1.25

package client_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// sleeper is a clock of a machine that can sleep: no timer notices.
type sleeper struct {
	clock.Clock
	slept atomic.Int64
}

func (s *sleeper) Now() time.Time { return s.Clock.Now().Add(time.Duration(s.slept.Load())) }

// After a sleep of the machine the context of a strict lease has ended for every caller, before any timer has run; that of a patient
// one has not.
func TestAContextLooksAtItsLease(t *testing.T) {
	for _, lease := range []client.Lease{client.Patient, client.Strict} {
		machine := &sleeper{Clock: clock.Real}
		server := workertest.New(t, workertest.MachineTime())
		c := newClient(t, server.URL(), append(server.Options(), beats.Client.WithClock(machine).(client.Option), client.DefaultLease(lease))...)
		s := &site{t, server, c}
		_, err, _ := s.push()
		_, done, _ := s.push()
		if err.Err() != nil {
			t.Fatal(err.Err())
		}
		machine.slept.Store(int64(10 * time.Minute))
		ended := false
		select {
		case <-done.Done():
			ended = true
		default:
		}
		if want := lease == client.Strict; ended != want || (err.Err() != nil) != want {
			t.Errorf("lease %d: Done has ended: %v; Err returns %v", lease, ended, err.Err())
		}
	}
}
