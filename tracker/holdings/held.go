package holdings

import (
	"context"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Holding is one attempt that a worker holds, from its entry in a held set.
type Holding struct {
	text   string // the entry
	Ref    *schema.TaskRef
	Worker string
	member string
	Claim  string
}

// ParseHeld parses an entry that held_entry in lua/lib/held.lua has packed; false: it is none.
func ParseHeld(text string, shard int) (Holding, bool) {
	p := strings.Split(text, "/") // worker, tenant, workspace, task#attempt.fence, timeout, run, claim
	if len(p) != 7 {
		return Holding{}, false
	}
	id, _, _ := strings.Cut(p[3], "#")
	r := &schema.TaskRef{Scope: model.Scope{Tenant: p[1], Workspace: p[2]}, ID: id, Shard: shard, Exists: true}
	r.Resolve(p[5], p[4])
	return Holding{text: text, Worker: p[0], Ref: r, member: p[1] + "/" + p[2] + "/" + p[3], Claim: p[6]}, true
}

// heldPage is how many entries of a held set one script reads.
const heldPage = 1000

// HeldBy returns all attempts that a worker holds, over all shards.
func (s *Service) HeldBy(ctx context.Context, op string, scope model.Scope, workerID string) ([]Holding, error) {
	after := make([]string, s.store.Shards())
	open := make([]int, s.store.Shards())
	for shard := range open {
		open[shard] = shard
	}
	var held []Holding
	for len(open) > 0 {
		calls := store.CallEach(open, func(shard int) *store.Call { return s.heldCall(shard, scope, workerID, after[shard], heldPage) })
		s.store.DoAll(ctx, op, calls)
		open = open[:0:0]
		if err := store.FirstError(calls); err != nil {
			return nil, err
		}
		for _, c := range calls {
			entries := readEntries(c.Reply)
			for _, text := range entries {
				if h, ok := ParseHeld(text, c.Shard); ok {
					held = append(held, h)
				}
			}
			if len(entries) == heldPage {
				after[c.Shard] = entries[heldPage-1]
				open = append(open, c.Shard)
			}
		}
	}
	return held, nil
}

// name returns the attempt as its worker names it.
func (h *Holding) name() OwnedAttempt {
	number, _, _ := schema.SplitAttempt(h.member)
	return OwnedAttempt{h.Ref.ID, number}
}

// attemptOf returns the attempt of a holding, as a token issued now would describe it.
func (s *Service) attemptOf(h *Holding, now time.Time) *model.Attempt {
	number, fence, _ := schema.SplitAttempt(h.member)
	return s.beats.Attempt(model.Attempt{
		Scope: h.Ref.Scope, TaskID: h.Ref.ID, RunID: h.Ref.Run, Number: number, Fence: fence, Timeout: schema.Duration(h.Ref.TimeoutMs, 0),
		Interval: model.DefaultHeartbeatInterval, IssuedAt: now, WorkerID: h.Worker,
	})
}
