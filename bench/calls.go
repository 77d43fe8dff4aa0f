package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// call makes a call of the control plane, waits and repeats it where the server is busy, and reads the answer into a value.
func (f *fixture) call(ctx context.Context, method, path, body string, into any) error {
	for repeated := false; ctx.Err() == nil; {
		req, err := http.NewRequestWithContext(ctx, method, f.server.URL+path, bytes.NewReader([]byte(body)))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+f.control)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		switch {
		case err != nil:
			return err
		case res.StatusCode == http.StatusServiceUnavailable:
			repeated = true
			time.Sleep(100 * time.Millisecond)
		case res.StatusCode == http.StatusConflict && repeated && into == nil: // it was done, and only not confirmed
			return nil
		case res.StatusCode/100 != 2:
			return fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, text)
		case into != nil:
			return json.Unmarshal(text, into)
		default:
			return nil
		}
	}
	return ctx.Err()
}

// eachOf does something n times, 16 at a time.
func eachOf(n int, do func(i int) error) error { return someOf(n, 16, do) }

// someOf is eachOf with so many under way at once.
func someOf(n, atOnce int, do func(i int) error) error {
	var running sync.WaitGroup
	errs, slots := make([]error, n), make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() { errs[i] = do(i); <-slots })
	}
	running.Wait()
	return errors.Join(errs...)
}
