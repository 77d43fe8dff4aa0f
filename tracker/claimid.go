package tracker

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// claimLife is how long a claim id stands for the tasks that were claimed with it.
const claimLife = time.Hour

// What a claim's record answers; lua/queues/claimed.lua says the same.
const (
	claimMine int64 = iota
	claimBusy
	claimAnswered
	claimOver
)

// claimFollow is how long a request that was superseded waits for the other's answer.
const claimFollow = time.Second

// claimTurn is for how long a request may take tasks without asking again, and so for how long the mark of one that died
// holds up another: longer than an answer takes, a wait for tasks aside.
func (o *Options) claimTurn() time.Duration { return o.RedisTimeout * 3 / 2 }

// identify makes the claim under its id. When a request with this id has taken tasks before, their answer is this one's
// too: the tasks of it that the worker still holds, as their entries in the held sets say, whatever became of that
// request, and whatever has become of the worker since.
func (c *claim) identify() (answered bool, tasks []*Envelope, err error) {
	if c.ClaimID == "" {
		return false, nil, nil
	}
	if _, ok := c.t.workerRef(c.Scope, c.WorkerID); !ok {
		return false, nil, workerNotFound("claim")
	}
	sum := sha256.Sum256([]byte(c.ClaimID))
	c.mark, c.owner = base64.RawURLEncoding.EncodeToString(sum[:15]), newID("")
	for {
		begun := time.Now()
		code, known, left, err := c.step("make")
		switch {
		case err != nil:
			return false, nil, err
		case code == claimAnswered:
			tasks, err = c.marked()
			return true, tasks, err
		case code == claimBusy: // it will have taken something, or not, in a moment
			if !c.listen() { // else it may have ended before this one could hear of it
				c.awaitNudge(left)
			}
			if c.server.Err() != nil || c.t.store.isLate(nil) {
				return false, nil, asUnavailable("claim", errClaimBusy())
			}
			continue
		case known: // a request with this id may have died after it took tasks
			tasks, err = c.marked()
		}
		c.making, c.turn = true, begun.Add(c.t.opts.claimTurn())
		if answered = len(tasks) > 0; answered && err == nil {
			tasks, err = c.answered(tasks)
		}
		if err != nil {
			c.rest()
		}
		return answered, tasks, err
	}
}

// errClaimBusy is an error, so that the request is repeated: an empty answer would end the claim for its worker, and not
// for the request that is taking tasks under its id.
func errClaimBusy() *Error {
	return &Error{Code: Overloaded, RetryAfter: time.Second, Message: "another request with this claimId is being answered; send it again with the same claimId, which gets the same tasks"}
}

// resume lets a claim that has waited take again; false: a later request makes it, or has made it, by now.
func (c *claim) resume() (bool, error) {
	begun := time.Now()
	if c.mark == "" || c.making && begun.Before(c.turn) {
		return true, nil
	}
	code, _, _, err := c.step("take")
	c.making, c.turn = err == nil && code == claimMine, begun.Add(c.t.opts.claimTurn())
	return c.making, err
}

// rest lets later requests with its id make the claim, for as long as this one takes nothing.
func (c *claim) rest() {
	if c.making {
		c.making = false
		c.t.tidy(func(t *Tracker) { _, _ = t.store.do("claim", c.stepCall("wait")) }) // else its turn ends by itself
	}
}

// answered records that the claim has got its tasks. Without that the answer must not go out: once the worker had
// finished them, nothing would tell a repeat from a new claim. A request whose time was over while it took them answers
// as the one that makes the claim by then.
func (c *claim) answered(tasks []*Envelope) ([]*Envelope, error) {
	if c.mark == "" {
		return tasks, nil
	}
	c.making = false
	code, _, _, err := c.step("done")
	switch {
	case err != nil:
		return nil, err
	case code == claimMine:
		return tasks, nil
	}
	return c.follow()
}

// overtaken tells whether another request with its id has got tasks. What cannot be learnt now the end of the wait asks.
func (c *claim) overtaken() bool {
	if c.mark == "" || c.making {
		return false
	}
	code, _, _, err := c.step("look")
	c.over = err == nil && code == claimAnswered
	return c.over
}

// inVain answers a claim that gets nothing for the reason given, none when its wait is over: as the request with its id
// that has got tasks meanwhile, or that takes some just now.
func (c *claim) inVain(reason error) ([]*Envelope, error) {
	if code := CodeOf(reason); c.mark == "" || code == Unavailable || code == Overloaded {
		return nil, reason
	}
	switch code, _, _, err := c.step("look"); {
	case err != nil:
		return nil, err
	case code == claimAnswered, code == claimBusy:
		return c.follow()
	}
	return nil, reason
}

// follow gives the answer of the later request that makes the claim instead, should it have one soon. While that one takes
// nobody knows whether there is one.
func (c *claim) follow() ([]*Envelope, error) {
	c.listen()
	for until := time.Now().Add(claimFollow); ; {
		code, _, _, err := c.step("ask")
		switch {
		case err != nil:
			return nil, err
		case code == claimAnswered:
			return c.marked()
		case c.server.Err() == nil && !c.t.store.isLate(nil) && time.Now().Before(until):
		case code == claimBusy:
			return nil, asUnavailable("claim", errClaimBusy())
		default:
			return nil, nil
		}
		c.awaitNudge(time.Until(until))
	}
}

// step does a step of the claim's record. left is for how long another request may take.
func (c *claim) step(what string) (code int64, known bool, left time.Duration, err error) {
	re, err := c.t.store.do("claim", c.stepCall(what))
	return re.int(0), re.int(1) == 1, time.Duration(re.int(2)+1) * time.Millisecond, err
}

func (c *claim) stepCall(what string) *call {
	shard := c.t.store.shardOf(c.Scope, c.WorkerID)
	key := c.t.store.keys[shard].claim(c.Scope, c.WorkerID, c.mark)
	return newCall(shard, c.t.store.scripts.Get("claimed"), []string{key}, c.owner, ms(claimLife), what, ms(c.t.opts.claimTurn()))
}

// marked gives the tasks that were claimed under this id and that the worker still holds.
func (c *claim) marked() ([]*Envelope, error) {
	held, err := c.t.heldBy("claim", c.Scope, c.WorkerID)
	if err != nil {
		return nil, err
	}
	var refs []*taskRef
	for _, h := range held {
		if h.claim == c.mark {
			refs = append(refs, h.ref)
		}
	}
	return c.t.envelopesOf(refs, c.WorkerID)
}

// envelopesOf reads tasks that a worker holds and gives the envelopes of their attempts again.
func (t *Tracker) envelopesOf(refs []*taskRef, workerID string) ([]*Envelope, error) {
	calls := make([]*call, len(refs))
	for i, r := range refs {
		calls[i] = t.getCall(r, whole)
	}
	t.store.doAll("claim", calls)
	var tasks []*Envelope
	for i, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		v := readTask(refs[i], c.reply)
		if v != nil && v.WorkerID == workerID && (v.State == Dispatched || v.State == Running) {
			tasks = append(tasks, t.envelope(v.Task, v.fence, v.life))
		}
	}
	return tasks, nil
}

// holding is one attempt that a worker holds, as its entry in a held set says.
type holding struct {
	text   string // the entry
	ref    *taskRef
	worker string
	member string
	claim  string
}

// parseHeld reads an entry as held_entry in lua/lib/held.lua packs it.
func parseHeld(text string, shard int) (holding, bool) {
	p := strings.Split(text, "/") // worker, tenant, workspace, task#attempt.fence, timeout, run, claim
	if len(p) != 7 {
		return holding{}, false
	}
	id, _, _ := strings.Cut(p[3], "#")
	r := &taskRef{scope: Scope{p[1], p[2]}, id: id, shard: shard, exists: true}
	r.resolve(p[5], p[4])
	return holding{text: text, worker: p[0], ref: r, member: p[1] + "/" + p[2] + "/" + p[3], claim: p[6]}, true
}

// heldPage is how many entries of a held set are read at once.
const heldPage = 1000

// heldBy lists all that a worker holds.
func (t *Tracker) heldBy(op string, scope Scope, workerID string) ([]holding, error) {
	prefix := workerID + "/" + scope.String() + "/"
	after := make([]string, t.store.shards())
	open := make([]int, t.store.shards())
	for shard := range open {
		open[shard] = shard
	}
	var held []holding
	for len(open) > 0 {
		calls := make([]*call, len(open))
		for i, shard := range open {
			calls[i] = newCall(shard, t.store.scripts.Get("held"), []string{t.store.keys[shard].held}, prefix, after[shard], heldPage)
		}
		t.store.doAll(op, calls)
		open = open[:0:0]
		for _, c := range calls {
			if c.err != nil {
				return nil, c.err
			}
			entries := c.reply.strings()
			for _, text := range entries {
				if h, ok := parseHeld(text, c.shard); ok {
					held = append(held, h)
				}
			}
			if len(entries) == heldPage {
				after[c.shard] = entries[heldPage-1]
				open = append(open, c.shard)
			}
		}
	}
	return held, nil
}
