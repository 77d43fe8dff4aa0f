package sweep

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// maxCountedQueues bounds the series of a counter by queue, since tenants may create any number of queues.
const maxCountedQueues = 100

// queueCounter counts by queue. The first queues have a series each, all others share one.
type queueCounter struct {
	counts *prometheus.CounterVec

	mu    sync.Mutex
	known map[countedQueue]prometheus.Counter
}

type countedQueue struct{ tenant, workspace, queue string }

var otherQueues = countedQueue{schema.OtherLabel, schema.OtherLabel, schema.OtherLabel}

func newQueueCounter(name, help string) *queueCounter {
	return &queueCounter{
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"tenant", "workspace", "queue"}),
		known:  map[countedQueue]prometheus.Counter{},
	}
}

// of returns the counter of a queue. Call it before the first event where possible, since rate() needs the series to exist.
func (c *queueCounter) of(scope model.Scope, queue string) prometheus.Counter {
	name := countedQueue{scope.Tenant, scope.Workspace, queue}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[name] == nil && len(c.known) >= maxCountedQueues {
		name = otherQueues
	}
	if c.known[name] == nil {
		c.known[name] = c.counts.WithLabelValues(name.tenant, name.workspace, name.queue)
	}
	return c.known[name]
}
