package lifecycle

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that ends with the first SIGINT or SIGTERM. The second signal calls force, so that a stop that takes too long
// does not need SIGKILL. stop ends the watching of signals.
func Signals(parent context.Context, force func(os.Signal)) (ctx context.Context, stop func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	ctx, stopped := watch(parent, c, force)
	return ctx, func() {
		signal.Stop(c)
		stopped()
	}
}

func watch(parent context.Context, c <-chan os.Signal, force func(os.Signal)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-c:
			cancel()
		case <-done:
			return
		}
		select {
		case s := <-c:
			force(s)
		case <-done:
		}
	}()
	return ctx, func() {
		cancel()
		close(done)
		<-ended
	}
}
