package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Waits are the calls of a replica that wait for something to happen: claims and streams of events. A token is verified when a
// call arrives, so each of these is checked again while it waits, and ends when its token does or when the replica stops.
type Waits struct {
	api *API

	mu   sync.Mutex
	all  map[waiter]struct{}
	none chan struct{} // closed with the last of them; nil while there is none
}

// waiter is one call that waits.
type waiter interface {
	Principal() *Principal
	End(why string)     // it ends soon; later calls do nothing
	Look(now time.Time) // about once a second, by this process's clock
}

// Why calls end that wait, although nothing has failed.
const (
	endDraining = "draining"      // of this replica: come again, to another one
	endToken    = "token_expired" // come again with another one
	endRevoked  = "token_revoked" // it was taken back
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
	if why := w.api.endReason(one.Principal()); why != "" { // it came while the others were checked
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
		one.Look(now)
	}
}

// endReason returns why a call of a worker or with a control token may not go on; "": it may.
func (a *API) endReason(who *Principal) string {
	switch {
	case a.revoked.Load().Takes(who.Claims):
		return endRevoked
	case !a.RedisTime(&fasthttp.RequestCtx{}).Before(who.Claims.ExpiresAt.Time):
		return endToken
	case a.Running.Err() != nil:
		return endDraining
	}
	return ""
}

// WhileValid runs what may wait, with a context that ends when the request's token does or the replica stops. What comes of it
// is handed out only if the token is still valid then.
func (req *Request) WhileValid(waits bool, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(req.during(req.API.Running))
	defer cancel()
	if waits {
		w := &waitingCall{who: req.Caller, cancel: cancel}
		req.API.Waits.Add(w, time.Second)
		defer req.API.Waits.Remove(w)
	}
	err := do(ctx)
	if why := req.API.endReason(req.Caller); why != "" && why != endDraining {
		return ErrUnauthorized
	}
	return err
}

// waitingCall is one that is answered once.
type waitingCall struct {
	who    *Principal
	cancel context.CancelFunc
}

func (w *waitingCall) Principal() *Principal { return w.who }
func (w *waitingCall) End(string)            { w.cancel() }
func (w *waitingCall) Look(time.Time)        {}
