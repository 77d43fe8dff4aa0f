package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// destination is the node to which a Cluster node redirects a call.
type destination struct {
	addr   string
	asking bool // the shard is still migrating there
}

func destinationOf(err error) (to destination, redirected bool) {
	if addr, ok := redis.IsMovedError(err); ok {
		return destination{addr: addr}, true
	}
	addr, ok := redis.IsAskError(err)
	return destination{addr: addr, asking: true}, ok
}

// IsRedirect reports whether err states that a shard is not, or not completely, on the node that was asked.
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

// redirect runs calls again that a Cluster node redirected. A call that cannot run at once (a part of its shard's keys has moved, or no
// node serves the shard) does not wait, since the lane's other shards would wait too: its caller gets a 503 and retries.
func (s *runner) redirect(ctx context.Context, calls []*Call, g guarantee) {
	elsewhere := map[destination][]*Call{}
	stale := false
	for _, c := range calls {
		if to, ok := destinationOf(c.Err); ok {
			elsewhere[to] = append(elsewhere[to], c)
		}
		stale = stale || IsRedirect(c.Err) || IsNetwork(c.Err) // the node may be down and its shards promoted elsewhere
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
		} // else: a node without a lane cannot confirm writes; it gets one with its first shard
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

// runAnywhere runs calls on a node that has no lanes yet.
func (s *runner) runAnywhere(ctx context.Context, calls []*Call) {
	for _, c := range calls {
		cmd := redis.NewCmd(ctx, append([]any{"eval", c.Script.Source}, c.Argv[2:]...)...)
		_ = s.servers.cluster.Process(ctx, cmd)
		c.take(cmd)
	}
}
