package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

// Waits are a replica's waiting calls: claims, waits for tasks and event streams. A token is verified when a call arrives, so each waiting
// call is checked again periodically, and ends when its token is no longer valid or the replica stops.
type Waits struct {
	api *API

	mu   sync.Mutex
	all  map[waiter]struct{}
	none chan struct{} // closed with the last of them; nil while there is none
}

// waiter is a waiting call.
type waiter interface {
	Principal() *Principal
	End(why string)     // ends it soon; later calls do nothing
	Tick(now time.Time) // called about once a second, with this process's time
}

// Reasons why waiting calls end although nothing has failed.
const (
	endDraining = "draining"      // the replica is draining: call another one
	endToken    = "token_expired" // call again with another token
	endRevoked  = "token_revoked" // the token was revoked
)

// Add has a call checked until it is removed: every second, or more often.
func (w *Waits) Add(one waiter, every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[waiter]struct{}{}
	}
	w.all[one] = struct{}{}
	if w.none == nil {
		w.none = make(chan struct{})
		go w.watch(w.none, min(time.Second, every))
	}
	if why := w.api.endReason(one.Principal()); why != "" { // it was added while the others were checked
		one.End(why)
	}
}

// Remove ends the checks of a call.
func (w *Waits) Remove(one waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.all, one); len(w.all) == 0 && w.none != nil {
		close(w.none)
		w.none = nil
	}
}

// Len returns how many calls wait.
func (w *Waits) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// watch checks all calls until there are none.
func (w *Waits) watch(none <-chan struct{}, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	draining := w.api.Running.Done()
	for {
		select {
		case <-none:
			return
		case <-draining:
			w.Check()
			return // later calls are ended when they are added
		case <-tick.C:
			w.Check()
		}
	}
}

// Check ends the calls whose token is not valid any more.
func (w *Waits) Check() {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		if why := w.api.endReason(one.Principal()); why != "" {
			one.End(why)
			continue
		}
		one.Tick(now)
	}
}

// endReason returns why a call with a worker's or a control token must end, or "".
func (a *API) endReason(who *Principal) string {
	switch {
	case a.revoked.Load().Revokes(who.Claims):
		return endRevoked
	case !a.RedisTime(&fasthttp.RequestCtx{}).Before(who.Claims.ExpiresAt.Time):
		return endToken
	case a.Running.Err() != nil:
		return endDraining
	}
	return ""
}

// WhileValid runs an operation that may wait, with a context that ends when the request's token expires or is revoked, its client has gone,
// or the replica stops. It returns the result only if the token is still valid then.
func (req *Request) WhileValid(waits bool, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(req.during(req.API.Running))
	defer cancel()
	if waits {
		w := &waitingCall{who: req.Caller, cancel: cancel}
		req.API.Waits.Add(w, time.Second)
		defer req.API.Waits.Remove(w)
		conn.OnHangUp(req.Ctx.Conn(), cancel)
		defer conn.OnHangUp(req.Ctx.Conn(), nil)
	}
	err := do(ctx)
	if why := req.API.endReason(req.Caller); why != "" && why != endDraining {
		return ErrUnauthorized
	}
	return err
}

// waitingCall is a waiting call with a single answer.
type waitingCall struct {
	who    *Principal
	cancel context.CancelFunc
}

func (w *waitingCall) Principal() *Principal { return w.who }
func (w *waitingCall) End(string)            { w.cancel() }
func (w *waitingCall) Tick(time.Time)        {}
