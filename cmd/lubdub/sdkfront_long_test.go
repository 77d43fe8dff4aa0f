//go:build long

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// sdkFront is a proxy before the replicas that records which completions they have acknowledged.
type sdkFront struct {
	*httptest.Server
	hosts []string
	next  atomic.Int64

	mu    sync.Mutex
	acked map[string]map[int]v1.Outcome // by task and attempt
	all   int
}

// publicURL is replaced in envelopes by the address that the worker used for its request.
const publicURL = "http://lubdub.invalid"

type completionsKey struct{}

// completionsOf are the completions in a request to an address.
type completionsOf struct {
	host string
	all  []v1.ExchangeCompletion
}

func startFront(hosts []string) *sdkFront {
	f := &sdkFront{hosts: hosts, acked: map[string]map[int]v1.Outcome{}}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", f.hosts[int(f.next.Add(1))%len(f.hosts)]
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: f.note,
		Transport:      &http.Transport{MaxIdleConnsPerHost: 256},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway) // a replica that is restarted
		},
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &completionsOf{host: r.Host}
		if name := path.Base(r.URL.Path); name == "completed" || name == "exchange" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			one, some := v1.ExchangeCompletion{TaskID: path.Base(path.Dir(r.URL.Path))}, v1.ExchangeRequest{}
			if json.Unmarshal(body, &some) != nil || json.Unmarshal(body, &one) != nil {
				return
			}
			if c.all = some.Completed; name == "completed" {
				c.all = []v1.ExchangeCompletion{one}
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		// A call of a worker that is killed meanwhile continues, so that what it has completed is recorded.
		ctx, end := context.WithCancel(context.WithValue(context.WithoutCancel(r.Context()), completionsKey{}, c))
		defer end()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	return f
}

// note notes what was acknowledged, and has callbacks go the way that the worker's calls go.
func (f *sdkFront) note(res *http.Response) error {
	c, _ := res.Request.Context().Value(completionsKey{}).(*completionsOf)
	if c == nil || res.StatusCode != http.StatusOK || len(c.all) == 0 && !strings.HasSuffix(res.Request.URL.Path, "/claim") {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	var exchanged v1.ExchangeResponse
	if err := json.Unmarshal(body, &exchanged); err != nil {
		return err
	}
	for i, one := range c.all {
		if len(exchanged.Completed) > 0 && exchanged.Completed[i].Status != http.StatusOK {
			continue
		}
		f.mu.Lock()
		if f.acked[one.TaskID] == nil {
			f.acked[one.TaskID] = map[int]v1.Outcome{}
		}
		f.acked[one.TaskID][one.Attempt] = one.Outcome
		f.all++
		f.mu.Unlock()
	}
	body = bytes.ReplaceAll(body, []byte(publicURL), []byte("http://"+c.host))
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Set("Content-Length", fmt.Sprint(len(body)))
	return nil
}

// count is how many completions were acknowledged.
func (f *sdkFront) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}
