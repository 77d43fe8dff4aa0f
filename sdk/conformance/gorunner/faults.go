package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// faults is what carries the requests of a broken runner. It does to requests and answers what an SDK with the fault would have
// sent, or would not have honoured.
type faults struct {
	name  string
	plain http.RoundTripper

	mu       sync.Mutex
	busy     bool       // a handler spins
	idle     *sync.Cond // no handler spins any more
	number   int
	tokens   map[string]string // the first of its kind
	interval float64           // the first that was reported
	stopping bool
	started  map[string]bool  // tasks
	listed   []map[string]any // by the newest beat of a worker
}

// call is one exchange as a fault sees it.
type call struct {
	*faults
	req  *http.Request
	kind string // the last part of the path, in which the calls differ
	in   map[string]any
	send func() (*reply, error)
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	out    map[string]any
}

// fault makes an exchange.
type fault func(*call) (*reply, error)

// known are the faults of transport; those without a function are of how the SDK is set up.
var known = map[string]fault{
	"no-deregister":           without("deregister"),
	"never-completes":         without("completed"),
	"keeps-interval":          keepsInterval,
	"drops-progress":          dropsProgress,
	"drops-checkpoints":       dropsCheckpoints,
	"beat-after-completion":   beatAfterCompletion,
	"other-body":              rewrites("completed", "workerId"),
	"new-claim-id":            rewrites("claim", "claimId"),
	"new-registration-id":     rewrites("workers", "registrationId"),
	"counts-twice":            countsTwice,
	"gives-up":                givesUp,
	"no-retry-after":          noRetryAfter,
	"takes-503-for-410":       takesForExpired(http.StatusServiceUnavailable),
	"takes-401-for-410":       takesForExpired(http.StatusUnauthorized),
	"stale-token":             staleToken,
	"deaf":                    deaf,
	"keeps-claiming":          keepsClaiming,
	"greedy":                  greedy,
	"never-comes-back":        neverComesBack,
	"no-beats-while-stopping": noBeatsWhileStopping,
	"no-beats-while-spinning": noBeatsWhileSpinning,
	"one-category":            oneCategory,
	"no-delay":                noDelay,
	"one-by-one":              oneByOne,
	"always-lists":            alwaysLists,
	"no-reason":               noReason,
	"never-refused":           neverRefused,
	"forgets-drained":         forgetsDrained,
	"fails-the-rest":          failsTheRest,
	"types-only":              typesOnly,
	"all-types":               allTypes,
	"no-item-retry":           noItemRetry,
	"one-name":                oneName,
	"late-to-list":            listsLate,
	"noisy":                   noisy,
	"starts-again":            startsAgain,
	"always-exchanges":        alwaysExchanges,
	"one-result":              oneResult,
	"no-fallback":             noFallback,
	"repeats-exchanges":       repeatsExchanges,
	"workers-token":           workersToken,
	"silent":                  nil, // main discards its log
	"no-grace":                nil,
	"strict":                  nil,
	"patient":                 nil,
	"one-address":             nil,
	"other-authority":         nil, // as any transport of a fault
}

func newFaults(o *order) (*faults, error) {
	if _, ok := known[o.Break]; !ok {
		return nil, fmt.Errorf("there is no fault %q", o.Break)
	}
	switch o.Break {
	case "strict", "patient":
		o.Lease = o.Break
	case "one-address":
		o.URLs = o.URLs[:1]
	case "no-grace":
		_ = os.Unsetenv("TERMINATION_GRACE_PERIOD_SECONDS")
	}
	f := &faults{name: o.Break, plain: http.DefaultTransport, tokens: map[string]string{}, started: map[string]bool{}}
	f.idle = sync.NewCond(&f.mu)
	return f, nil
}

// spinning sets whether a handler keeps a core busy. It does nothing on nil faults.
func (f *faults) spinning(on bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = on
	f.idle.Broadcast()
}

// RoundTrip makes an exchange as the fault has it.
func (f *faults) RoundTrip(req *http.Request) (*http.Response, error) {
	c := &call{faults: f, req: req, kind: req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]}
	body := []byte("{}")
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	c.in = parse(body)
	same := write(c.in)
	c.send = func() (*reply, error) {
		b := body
		if now := write(c.in); !bytes.Equal(now, same) {
			b = now
		}
		return f.exchange(req, b)
	}
	act := known[f.name]
	if act == nil {
		act = (*call).pass
	}
	a, err := act(c)
	if err != nil {
		return nil, err
	}
	return a.response(req), nil
}

func (c *call) pass() (*reply, error) { return c.send() }

// exchange sends a request with a body.
func (f *faults) exchange(req *http.Request, body []byte) (*reply, error) {
	again := req.Clone(req.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res, err := f.plain.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	return &reply{res.StatusCode, res.Header, parse(text)}, nil
}

// beats reports whether the call carries beats.
func (c *call) beats() bool { return c.kind == "heartbeat" || c.kind == "heartbeats" }

var errFault = errors.New("the fault has it so")
