package httpapi

import (
	"errors"
	"io"
	"testing"
)

type brokenWriter struct{ flushed bool }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.flushed {
		return len(p), nil
	}
	return 0, errors.New("broken")
}
func (w *brokenWriter) Flush() error { return errors.New("broken") }

func TestACancelThatCouldNotBeWrittenIsNotDelivered(t *testing.T) {
	t.Parallel()
	sent := 0
	for _, w := range []io.Writer{&brokenWriter{}, &brokenWriter{flushed: true}} {
		d := &delivery{body: []byte("{}"), sent: func() { sent++ }}
		if _, err := d.WriteTo(w); err == nil || sent != 0 {
			t.Errorf("%d deliveries, error %v", sent, err)
		}
	}
}
