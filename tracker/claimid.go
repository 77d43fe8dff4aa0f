package tracker

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// claimLife is how long a claim id stands for the tasks that were claimed with it.
const claimLife = time.Hour

// identify makes the claim under its id and gives the tasks that were claimed with it before, if the worker still
// holds them: their entries in the held sets say so, whatever became of the request that claimed them.
func (c *claim) identify() ([]*Envelope, error) {
	if c.ClaimID == "" {
		return nil, nil
	}
	sum := sha256.Sum256([]byte(c.ClaimID))
	c.mark, c.owner = base64.RawURLEncoding.EncodeToString(sum[:15]), newID("")
	re, err := c.t.store.do("claim", c.claimedCall("1"))
	if err != nil || re.str(0) == "" {
		return nil, err
	}
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

// superseded tells whether a later request makes this claim by now.
func (c *claim) superseded() bool {
	if c.mark == "" {
		return false
	}
	re, err := c.t.store.do("claim", c.claimedCall(""))
	return err == nil && re.str(0) != ""
}

func (c *claim) claimedCall(make string) *call {
	shard := c.t.store.shardOf(c.Scope, c.WorkerID)
	key := c.t.store.keys[shard].claim(c.Scope, c.WorkerID, c.mark)
	return newCall(shard, c.t.store.scripts.Get("claimed"), []string{key}, c.owner, ms(claimLife), make)
}

// envelopesOf reads tasks that a worker holds and gives the envelopes of their attempts again.
func (t *Tracker) envelopesOf(refs []*taskRef, workerID string) ([]*Envelope, error) {
	calls := make([]*call, len(refs))
	for i, r := range refs {
		calls[i] = t.getCall(r)
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

// parseHeld reads an entry as held_entry in lua/lib/queue.lua packs it.
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
