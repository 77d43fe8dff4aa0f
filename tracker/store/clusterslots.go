package store

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The Redis library asks one node after another for the map of slots, and waits for each as long as a round trip may take: a frozen node
// that comes first delays a start, and the map after a failover. slotsHook asks a second node when the first is slow.

// slotsPause is how long a node may take to answer before the next one is asked as well.
const slotsPause = 50 * time.Millisecond

// slotsHook intercepts CLUSTER SLOTS at all nodes of a Cluster and passes on every other command.
type slotsHook struct {
	options redis.Options // of the clients for other nodes
	seeds   []string      // the addresses in the URL

	mu    sync.Mutex
	nodes []string // in the last reply
}

// useSlotsHook installs the hook in the clients of all nodes.
func useSlotsHook(o *redis.ClusterOptions, options redis.Options) {
	hook := &slotsHook{options: options, seeds: o.Addrs}
	o.NewClient = func(of *redis.Options) *redis.Client {
		c := redis.NewClient(of)
		c.AddHook(&nodeHook{slotsHook: hook, addr: of.Addr})
		return c
	}
}

// nodeHook is slotsHook for one node.
type nodeHook struct {
	*slotsHook
	addr string
}

func (h *nodeHook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		slotsCmd, ok := cmd.(*redis.ClusterSlotsCmd)
		if !ok {
			return next(ctx, cmd)
		}
		slots, err := firstAnswer(ctx, h.addresses(), func(ctx context.Context, addr string) ([]redis.ClusterSlot, error) {
			if addr != h.addr {
				return h.querySlots(ctx, addr)
			}
			own := redis.NewClusterSlotsCmd(ctx, "cluster", "slots")
			err := next(ctx, own)
			return own.Val(), err
		})
		if err != nil {
			slotsCmd.SetErr(err)
			return err
		}
		h.learn(slots)
		slotsCmd.SetVal(slots)
		return nil
	}
}

// querySlots requests the map from another node. It opens a client for it, since the hook of an existing client would intercept the command
// again.
func (h *nodeHook) querySlots(ctx context.Context, addr string) ([]redis.ClusterSlot, error) {
	o := h.options
	o.Addr = addr
	c := redis.NewClient(&o)
	defer func() { _ = c.Close() }()
	slots := redis.NewClusterSlotsCmd(ctx, "cluster", "slots")
	err := c.Process(ctx, slots)
	return slots.Val(), err
}

// addresses lists this node, then the others in random order, then the addresses in the URL, which help when the whole Cluster has moved.
func (h *nodeHook) addresses() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []string{h.addr}
	for _, some := range [][]string{h.nodes, h.seeds} {
		for _, i := range rand.Perm(len(some)) {
			if !slices.Contains(list, some[i]) {
				list = append(list, some[i])
			}
		}
	}
	return list
}

func (h *nodeHook) learn(slots []redis.ClusterSlot) {
	var nodes []string
	for _, part := range slots {
		for _, n := range part.Nodes {
			if !slices.Contains(nodes, n.Addr) {
				nodes = append(nodes, n.Addr)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nodes = nodes
}

// firstAnswer asks the addresses in turn, the next one when the last has failed or is slow, and returns the first answer. It returns the
// first error when all have failed.
func firstAnswer[T any](
	ctx context.Context, addrs []string, query func(ctx context.Context, addr string) (T, error),
) (answer T, err error) {
	type reply struct {
		answer T
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops requests that are still running
	replies := make(chan reply, len(addrs))
	next := time.NewTimer(0)
	defer next.Stop()
	for started, failed := 0, 0; failed < len(addrs); {
		select {
		case <-next.C:
			if started < len(addrs) {
				addr := addrs[started]
				started++
				go func() {
					a, err := query(ctx, addr)
					replies <- reply{a, err}
				}()
				next.Reset(slotsPause)
			}
		case r := <-replies:
			if r.err == nil {
				return r.answer, nil
			}
			err = cmp.Or(err, r.err)
			failed++
			next.Reset(0)
		}
	}
	return answer, err
}
