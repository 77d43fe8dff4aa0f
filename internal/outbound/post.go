package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Limits of one request.
const (
	Timeout    = 15 * time.Second // from the look-up of the name to the end of reading the answer
	MaxExcerpt = 1 << 10          // bytes of the answer's body that are kept
	maxDrained = 16 << 10         // bytes of it that are read so that the connection can be reused
	bodyTime   = 2 * time.Second  // for reading the body: the status is known by then, and valid without it
)

// Post posts a body, and returns the status of the answer and the beginning of its body, at most MaxExcerpt bytes. The error is why
// there was no answer, and contains nothing of the URL. An answer counts once its headers have arrived, even if reading its body
// fails, for example when the connection is cut.
//
// When Timeout has passed or ctx ends, the connection is closed, whatever its peer does and whatever state the HTTP client
// believes it to be in: after 101, for example, the client no longer manages it.
func (p *Poster) Post(ctx context.Context, to string, header map[string]string, body []byte) (status int, excerpt []byte, err error) {
	ctx, end := context.WithTimeout(ctx, Timeout)
	defer end()
	dialling, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			abandon() // otherwise a later request may use the connection that is being dialled
		}
	}()
	var keep func() bool // nil: there is no connection yet
	scheme, _, _ := strings.Cut(to, ":")
	values := context.WithValue(context.WithValue(ctx, diallingKey{}, dialling), schemeKey{}, strings.ToLower(scheme))
	traced := httptrace.WithClientTrace(values, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { keep = connectionOf(got.Conn).closeAfter(ctx) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("the URL cannot be used any more")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0, nil, plain(err, keep != nil)
	}
	defer func() { _ = res.Body.Close() }()
	defer time.AfterFunc(bodyTime, end).Stop()
	if res.StatusCode < http.StatusOK { // its body is the connection itself
		end()
		return res.StatusCode, nil, nil
	}
	excerpt, _ = io.ReadAll(io.LimitReader(res.Body, MaxExcerpt))
	more := int64(1)
	if res.StatusCode/100 == 2 {
		more = maxDrained
	}
	if _, err := io.CopyN(io.Discard, res.Body, more); err == io.EOF {
		keep()
	} else {
		end()
	}
	return res.StatusCode, excerpt, nil
}

// plain returns why a request has failed, without what only the replica's own network should know: addresses, resolvers, and whether
// a name exists there.
func plain(err error, connected bool) error {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrName):
		return ErrName
	case errors.Is(err, ErrAddress):
		return ErrAddress
	case errors.Is(err, ErrPlain):
		return ErrPlain
	case errors.As(err, &timeout) && timeout.Timeout() && !connected:
		return fmt.Errorf("there was no connection within %v: the host, or its name server, does not answer", Timeout)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("there was no answer within %v", Timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the host refuses the connection")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return errors.New("the connection failed: " + op.Err.Error())
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		return errors.New("the request failed: " + of.Err.Error())
	}
	return errors.New("the request failed: " + err.Error())
}
