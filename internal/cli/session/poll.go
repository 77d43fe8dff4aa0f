package session

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// Poll calls check until it is done, with pauses that grow from pause to longest. If the server does not answer it retries, and notes that
// once. It returns ctx's error when that ends.
func (s *Session) Poll(ctx context.Context, pause, longest time.Duration, doing string, check func() (done bool, err error)) error {
	for down := false; ; pause = min(pause*3/2, longest) {
		done, err := check()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && exit.Code(err) != exit.Unavailable:
			return err
		case err != nil && !down:
			s.Note("%v; still %s", err, doing)
		case err == nil && done:
			return nil
		}
		down = err != nil
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
