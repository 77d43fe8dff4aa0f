package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
)

// maxAnswer is the limit of an answer, in bytes.
const maxAnswer = 64 << 20

// call is one call, including its retries.
type call struct {
	method, path string // the path is escaped
	query        url.Values
	in           any     // sent as JSON; nil: nothing
	body         []byte  // in, already encoded
	out          any     // a pointer; nil: the answer's body does not matter
	buffer       *[]byte // the answer's body is left there, in what it has room for; out does not count

	base  *endpoints // nil: the client's
	token string     // opens it; empty: the client's own does
	open  bool       // send no token
	key   string     // Idempotency-Key
	trace string     // traceparent
	// once: a repeat would apply it twice, so it is retried only if the server cannot have received it.
	once bool
	// wait is the time that the server may take in addition.
	wait time.Duration
	// limit is how long one answer may take; 0: the client's setting.
	limit time.Duration
	// tries is the maximum number of tries; 0: the client's setting.
	tries int
}

// do makes a call with retries.
func (c *Client) do(ctx context.Context, k *call) error {
	if k.in != nil {
		body, err := json.Marshal(k.in)
		if err != nil {
			return fmt.Errorf("lubdub: %s: %w", k.operation(), err)
		}
		k.body = body
	}
	if k.base == nil {
		k.base = c.base
	}
	tries := k.tries
	if tries == 0 {
		tries = c.set.tries
	}
	for n := 0; ; n++ {
		err := c.try(ctx, k)
		if err == nil || n+1 >= tries || !k.mayRepeat(err) || ctx.Err() != nil {
			return err
		}
		pause := backoff(n, maxPause, err)
		if deadline, ok := ctx.Deadline(); ok && deadline.Sub(c.set.clock.Now()) < pause {
			return err // more useful than the error of the context
		}
		if !clock.Sleep(c.set.clock, pause, ctx.Done()) {
			return err
		}
	}
}

func (k *call) operation() string { return k.method + " " + k.path }

// mayRepeat reports whether the call may be retried after an error.
func (k *call) mayRepeat(err error) bool {
	if !again(err) {
		return false
	}
	if !k.once {
		return true
	}
	var dial *net.OpError
	var e *Error
	return (errors.As(err, &dial) && dial.Op == "dial") || (errors.As(err, &e) && e.Status == http.StatusTooManyRequests)
}

// The pauses between retries.
const (
	firstPause = clock.FirstPause
	maxPause   = 5 * time.Second
)

// backoff is the pause before retry n, counted from 0. Retry-After is its minimum.
func backoff(n int, most time.Duration, err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter + clock.Backoff(n, most)
	}
	return clock.Backoff(n, most)
}

// try makes a call once, and a second time with a new token if its own was refused.
func (c *Client) try(ctx context.Context, k *call) error {
	if err := c.closing.Err(); err != nil {
		return ErrClosed
	}
	token := k.token
	if token == "" && !k.open {
		own, err := c.token.current(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotSent, err)
		}
		token = own
	}
	err := c.send(ctx, k, token)
	var e *Error
	if k.token != "" || k.open || !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
		return err
	}
	other, failed := c.token.renew(ctx, token)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if other == token {
		return err
	}
	return c.send(ctx, k, other)
}

var errLate = errors.New("no answer in time")

// send makes one request.
func (c *Client) send(ctx context.Context, k *call, token string) error {
	at := k.base.first()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := cmp.Or(k.limit, c.set.timeout) + k.wait
	defer c.set.clock.AfterFunc(limit, func() { cancel(errLate) })()
	req, err := c.request(ctx, k, at, token)
	if err != nil {
		return err
	}
	res, err := c.roundTrip(req)
	if err == nil {
		err = c.read(k, res)
	}
	if err != nil && again(err) {
		k.base.failed(at)
	}
	if err != nil && context.Cause(ctx) == errLate {
		return fmt.Errorf("lubdub: %s: no answer within %v", k.operation(), limit)
	}
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("lubdub: %s: %w", k.operation(), err)
}

// roundTrip sends a request. It does what http.Client.Do does for these calls, without cookies and redirects.
func (c *Client) roundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.carrier.RoundTrip(req)
	if err == nil && (res == nil || res.Body == nil) {
		err = errors.New("the transport returned neither an answer nor an error")
	}
	return res, err
}

// request builds the request to an address.
func (c *Client) request(ctx context.Context, k *call, at int32, token string) (*http.Request, error) {
	if err := k.base.bare[at]; token != "" && err != nil {
		return nil, err
	}
	u, err := k.base.url(at, k.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if len(k.query) > 0 {
		u.RawQuery = k.query.Encode()
	}
	req := &http.Request{
		Method: k.method, URL: u, Host: u.Host, Header: c.headers(token), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if k.body != nil {
		body := k.body
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.Header["Content-Type"] = jsonOnly
	}
	if k.key != "" {
		req.Header.Set("Idempotency-Key", k.key)
	}
	if k.trace != "" {
		req.Header.Set("Traceparent", k.trace)
	}
	return req.WithContext(ctx), nil
}

var jsonOnly = []string{"application/json"}

// headers returns the headers of every request. Their values are shared and read-only.
func (c *Client) headers(token string) http.Header {
	h := make(http.Header, 6)
	h["User-Agent"], h["Accept"] = c.agent, jsonOnly
	if token != "" {
		h["Authorization"] = []string{"Bearer " + token}
	}
	return h
}

// read reads an answer.
func (c *Client) read(k *call, res *http.Response) error {
	defer func() { _ = res.Body.Close() }()
	var own []byte
	into := k.buffer
	if into == nil {
		into = &own
	}
	if n := res.ContentLength; n >= 0 && n < maxAnswer && int64(cap(*into)) <= n {
		*into = make([]byte, 0, n+1) // one more, to detect the end
	}
	body, err := readAll((*into)[:0], io.LimitReader(res.Body, maxAnswer+1))
	*into = body
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return refusal(k.operation(), res, body)
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("%w: it is longer than %d MiB", ErrAnswer, maxAnswer>>20)
	}
	if k.out == nil || k.buffer != nil {
		return nil
	}
	if err := json.Unmarshal(body, k.out); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// readAll is io.ReadAll into the capacity of b.
func readAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		if b = b[:len(b)+n]; err == io.EOF {
			return b, nil
		} else if err != nil {
			return b, err
		}
	}
}
