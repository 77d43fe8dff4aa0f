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

type completionKey struct{}

type completionOf struct {
	host, task string
	v1.CompletedRequest
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
		c := &completionOf{host: r.Host}
		if strings.HasSuffix(r.URL.Path, "/completed") {
			body, err := io.ReadAll(r.Body)
			if err != nil || json.Unmarshal(body, &c.CompletedRequest) != nil {
				return
			}
			c.task = path.Base(path.Dir(r.URL.Path))
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), completionKey{}, c)))
	}))
	return f
}

// note notes what was acknowledged, and has callbacks go the way that the worker's calls go.
func (f *sdkFront) note(res *http.Response) error {
	c, _ := res.Request.Context().Value(completionKey{}).(*completionOf)
	if c == nil || res.StatusCode != http.StatusOK {
		return nil
	}
	if c.task != "" {
		f.mu.Lock()
		if f.acked[c.task] == nil {
			f.acked[c.task] = map[int]v1.Outcome{}
		}
		f.acked[c.task][c.Attempt] = c.Outcome
		f.all++
		f.mu.Unlock()
	}
	if !strings.HasSuffix(res.Request.URL.Path, "/claim") {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
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
