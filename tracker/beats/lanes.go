package beats

import (
	"runtime"
	"sync/atomic"

	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// lanes has a lane of beats for each node, and each shard's.
type lanes struct {
	byShard atomic.Pointer[[]*lane.Lane[*Beat]]
	byNode  map[*store.Node]*lane.Lane[*Beat] // of the nodes in use; mapLanes's own
}

func (l *lanes) of(shard int) *lane.Lane[*Beat] { return (*l.byShard.Load())[shard] }

// mapLanes is told of each new map of shards before it is used, one at a time. A node that is in use no more closes its
// lane.
func (s *Service) mapLanes(nodes []*store.Node) {
	byShard := make([]*lane.Lane[*Beat], len(nodes))
	byNode := map[*store.Node]*lane.Lane[*Beat]{}
	for shard, n := range nodes {
		l := byNode[n]
		if l == nil {
			l = s.lanes.byNode[n]
		}
		if l == nil {
			l = lane.New(s.opts.MaxPending, runtime.GOMAXPROCS(0), 1, newBatcher(s, n).flush)
			n.BeforeClose(l.Close)
		}
		byNode[n], byShard[shard] = l, l
	}
	s.lanes.byNode = byNode
	s.lanes.byShard.Store(&byShard)
}
