package api

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// waits are the calls of a replica that wait for something to happen: claims and streams of events. A token is verified when a
// call arrives, so each of these is checked again while it waits, and ends when its token does or when the replica stops.
type waits struct {
	api *API

	mu   sync.Mutex
	all  map[waiter]struct{}
	none chan struct{} // closed with the last of them; nil while there is none
}

// waiter is one call that waits.
type waiter interface {
	principal() *principal
	end(why string)     // it ends soon; later calls do nothing
	look(now time.Time) // about once a second, by this process's clock
}

// Why calls end that wait, although nothing has failed.
const (
	endDraining = "draining"      // of this replica: come again, to another one
	endToken    = "token_expired" // come again with another one
	endRevoked  = "token_revoked" // it was taken back
)

// add has a call checked until it is removed: every second, or more often.
func (w *waits) add(one waiter, every time.Duration) {
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
	if why := w.api.over(one.principal()); why != "" { // it came while the others were checked
		one.end(why)
	}
}

func (w *waits) remove(one waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.all, one); len(w.all) == 0 && w.none != nil {
		close(w.none)
		w.none = nil
	}
}

// Len returns how many calls wait.
func (w *waits) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// watch checks all calls until there are none.
func (w *waits) watch(none <-chan struct{}, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	draining := w.api.Running.Done()
	for {
		select {
		case <-none:
			return
		case <-draining:
			w.check()
			return // later calls are ended when they are added
		case <-tick.C:
			w.check()
		}
	}
}

// check ends the calls whose token is not valid any more.
func (w *waits) check() {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		if why := w.api.over(one.principal()); why != "" {
			one.end(why)
			continue
		}
		one.look(now)
	}
}

// over returns why a call of a worker or with a control token may not go on; "": it may.
func (a *API) over(who *principal) string {
	switch {
	case a.revoked.Load().Takes(who.claims):
		return endRevoked
	case !a.NowOf(&fasthttp.RequestCtx{}).Before(who.claims.ExpiresAt.Time):
		return endToken
	case a.Running.Err() != nil:
		return endDraining
	}
	return ""
}

// whileValid runs what may wait, with a context that ends when the request's token does or the replica stops. What comes of it
// is handed out only if the token is still valid then.
func (req *request) whileValid(waits bool, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(req.during(req.api.Running))
	defer cancel()
	if waits {
		w := &waitingCall{who: req.who, cancel: cancel}
		req.api.Waits.add(w, time.Second)
		defer req.api.Waits.remove(w)
	}
	err := do(ctx)
	if why := req.api.over(req.who); why != "" && why != endDraining {
		return errUnauthorized
	}
	return err
}

// waitingCall is one that is answered once.
type waitingCall struct {
	who    *principal
	cancel context.CancelFunc
}

func (w *waitingCall) principal() *principal { return w.who }
func (w *waitingCall) end(string)            { w.cancel() }
func (w *waitingCall) look(time.Time)        {}
