package store

import (
	"context"
	"errors"
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

// IsRedirect reports whether err says that a shard is not, or not wholly, where it was looked for.
func IsRedirect(err error) bool {
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

// redirect runs the calls again that a Cluster node sent elsewhere. What cannot be done at once (a part of a shard's keys has
// moved; nobody serves it) is not waited for, since the lane's other shards would wait too: its callers get a 503 and come
// again.
func (s *runner) redirect(ctx context.Context, calls []*Call, g guarantee) {
	elsewhere := map[destination][]*Call{}
	stale := false
	for _, c := range calls {
		if to, ok := destinationOf(c.Err); ok {
			elsewhere[to] = append(elsewhere[to], c)
		}
		stale = stale || IsRedirect(c.Err) || IsNetwork(c.Err) // the node may be gone and its shards promoted elsewhere
	}
	if stale {
		s.topology.remap()
	}
	for to, group := range elsewhere {
		n := s.topology.nodeAt(to.addr)
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
			if IsRedirect(c.Err) {
				s.topology.unsettled[c.Shard].Store(now)
			}
		}
	}
}

// runAnywhere runs calls for a node that has had no shard yet.
func (s *runner) runAnywhere(ctx context.Context, calls []*Call) {
	for _, c := range calls {
		cmd := redis.NewCmd(ctx, append([]any{"eval", c.Script.Source}, c.Argv[2:]...)...)
		_ = s.servers.cluster.Process(ctx, cmd)
		c.take(cmd)
	}
}
