package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// refusal is an answer that is not 2xx.
type refusal struct {
	Status     int
	RetryAfter time.Duration
	Body       v1.Error
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", r.Status, r.Body.Error, r.Body.Message)
}

// again reports whether the same call may succeed later: there was no answer, or one that asks to come again.
func again(err error) bool {
	var r *refusal
	if errors.As(err, &r) {
		return r.Status == http.StatusServiceUnavailable || r.Status == http.StatusTooManyRequests
	}
	return err != nil && !errors.Is(err, errAnswer) && !errors.Is(err, context.Canceled)
}

// refusedWith returns the status of a refusal, 0 when err is none.
func refusedWith(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.Status
	}
	return 0
}

var errAnswer = errors.New("an answer that is not the contract's")

// maxAnswer is more than any answer to the fleet's calls holds.
const maxAnswer = 1 << 20

// wire makes calls.
type wire struct {
	base string
	http *http.Client
}

// call sends one request and decodes its answer into out, which may be nil. A non-nil error is a *refusal,
// errAnswer, or says that there was no answer.
func (w *wire) call(ctx context.Context, method, path, token string, in, out any) error {
	return w.callOnce(ctx, method, path, token, "", in, out)
}

// callOnce is call with an Idempotency-Key: made again after a lost answer, it has no second effect.
func (w *wire) callOnce(ctx context.Context, method, path, token, key string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		r := &refusal{Status: res.StatusCode}
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
			r.RetryAfter = time.Duration(seconds) * time.Second
		}
		_ = json.Unmarshal(answer, &r.Body) // a proxy's page leaves it empty; the status says enough
		return r
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%w: %s %s: %v", errAnswer, method, path, err)
	}
	return nil
}
