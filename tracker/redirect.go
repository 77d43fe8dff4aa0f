package tracker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// destination is where a Cluster node said that a call belongs.
type destination struct {
	addr   string
	asking bool // the shard is on its way there
}

func destinationOf(err error) (to destination, redirected bool) {
	if addr, ok := redis.IsMovedError(err); ok {
		return destination{addr: addr}, true
	}
	addr, ok := redis.IsAskError(err)
	return destination{addr: addr, asking: true}, ok
}

// isRedirect tells that a shard is not, or not wholly, where it was looked for.
func isRedirect(err error) bool {
	var re redis.Error
	if !errors.As(err, &re) {
		return false
	}
	for _, p := range [...]string{"MOVED ", "ASK ", "TRYAGAIN", "CLUSTERDOWN"} {
		if strings.HasPrefix(re.Error(), p) {
			return true
		}
	}
	return false
}

// redirect has the calls run again that a Cluster node sent elsewhere. What cannot be done at once (a part of a
// shard's keys has moved; nobody serves it) is not waited for, since the lane's other shards would wait too: its
// callers are told 503 and come again.
func (s *store) redirect(ctx context.Context, calls []*call, g guarantee) {
	elsewhere := map[destination][]*call{}
	stale := false
	for _, c := range calls {
		if to, ok := destinationOf(c.err); ok {
			elsewhere[to] = append(elsewhere[to], c)
		}
		stale = stale || isRedirect(c.err) || isNetwork(c.err) // the node may be gone and its shards promoted elsewhere
	}
	if stale {
		s.remap()
	}
	for to, group := range elsewhere {
		n := s.nodeAt(to.addr)
		switch {
		case n != nil && to.asking:
			s.roundTrip(ctx, n, group, trip{guarantee: g, load: true, asking: true})
		case n != nil:
			s.runOn(ctx, n, group, g)
		case g == nil:
			s.runAnywhere(ctx, group)
		} // else: nothing can be made safe on a node without a lane, and it has one as soon as it has a shard
	}
	if stale {
		now := time.Now().UnixMilli()
		for _, c := range calls {
			if isRedirect(c.err) {
				s.unsettled[c.shard].Store(now)
			}
		}
	}
}

// settled lists the shards of a node but for those that were between two nodes a moment ago: the sweeper's rounds over all
// of them must not be cut short by one each time.
func (s *store) settled(n *node) []int {
	moment := time.Now().Add(-500 * time.Millisecond).UnixMilli()
	return slices.DeleteFunc(s.byNode()[n], func(shard int) bool { return s.unsettled[shard].Load() > moment })
}

// runAnywhere is for a node that has had no shard yet.
func (s *store) runAnywhere(ctx context.Context, calls []*call) {
	for _, c := range calls {
		cmd := redis.NewCmd(ctx, append([]any{"eval", c.script.Source}, c.argv[2:]...)...)
		_ = s.cluster.Process(ctx, cmd)
		c.take(cmd)
	}
}

func (s *store) nodeAt(addr string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[addr]
}
