package lifecycle

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFirstSignalEndsSecondForces(t *testing.T) {
	c := make(chan os.Signal, 2)
	forced := make(chan os.Signal, 1)
	ctx, stop := watch(context.Background(), c, func(s os.Signal) { forced <- s })
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("it ended by itself")
	}
	c <- syscall.SIGTERM
	<-ctx.Done()
	select {
	case <-forced:
		t.Fatal("one signal must not force")
	default:
	}
	c <- syscall.SIGINT
	if s := <-forced; s != syscall.SIGINT {
		t.Error(s)
	}
}

func TestStopWithoutSignal(t *testing.T) {
	ctx, stop := watch(context.Background(), make(chan os.Signal), func(os.Signal) { t.Error("forced") })
	stop()
	<-ctx.Done()
	parent, cancel := context.WithCancel(context.Background())
	cancel()
	ctx, stop = Signals(parent, func(os.Signal) { t.Error("forced") })
	<-ctx.Done()
	stop()
}

func waits(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestGroupStopsInOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g := NewGroup(ctx)
	var order []string
	service := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			<-ctx.Done()
			order = append(order, name) // stop waits, so there is no race
			return nil
		}
	}
	stopA, stopB := g.Start("a", service("a")), g.Start("b", service("b"))
	cancel()
	<-g.Done()
	if len(order) != 0 {
		t.Error("services must run until they are stopped")
	}
	for _, stop := range []Stop{stopB, stopA, stopA} {
		if err := stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	g.wg.Wait()
	if len(order) != 2 || order[0] != "b" || order[1] != "a" || g.Err() != nil {
		t.Errorf("%v, %v", order, g.Err())
	}
}

func TestGroupEndsWithAService(t *testing.T) {
	broken := errors.New("broken")
	for name, run := range map[string]func(context.Context) error{
		"with an error":    func(context.Context) error { return broken },
		"on its own":       func(context.Context) error { return nil },
		"with a cancelled": func(context.Context) error { return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewGroup(context.Background())
			stop := g.Start("other", waits)
			g.Start("this", run)
			<-g.Done()
			if g.Err() == nil || name == "with an error" && (!errors.Is(g.Err(), broken) || g.Err().Error() != "this: broken") {
				t.Error(g.Err())
			}
			_ = stop(context.Background())
			g.wg.Wait()
		})
	}
}

// The end of a service while it is being stopped is no error, but an error that it then returns is kept.
func TestGroupErrorAtStop(t *testing.T) {
	g := NewGroup(context.Background())
	stop := g.Start("a", waits)
	_ = stop(context.Background())
	if g.Err() != nil {
		t.Error(g.Err())
	}
	stop = g.Start("b", func(ctx context.Context) error { <-ctx.Done(); return errors.New("lost something") })
	_ = stop(context.Background())
	if g.Err() == nil {
		t.Error("an error at the stop was swallowed")
	}
	g.wg.Wait()
}

// A service that hangs does not block the end: stop names it, and the other services are stopped too.
func TestStopWaitsNoLongerThanItsLimit(t *testing.T) {
	g := NewGroup(context.Background())
	release := make(chan struct{})
	hangs := g.Start("hanging", func(context.Context) error { <-release; return nil })
	ends := g.Start("other", waits)
	limit, over := context.WithCancel(context.Background())
	over()
	if err := hangs(limit); err == nil || err.Error() != "the hanging had not ended" {
		t.Error(err)
	}
	if err := ends(context.Background()); err != nil {
		t.Error(err)
	}
	close(release)
	if err := hangs(context.Background()); err != nil {
		t.Error(err)
	}
	g.wg.Wait()
}
