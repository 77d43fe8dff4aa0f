package store

import (
	"context"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// listByQueue adds the workers and running tasks of an older store, which has no lists by queue, to their queues' lists.
func (s *format) listByQueue(ctx context.Context) error {
	type walk struct {
		shard   int
		workers bool
		from    string
	}
	var open []walk
	for shard := range s.keyspace.Keys {
		open = append(open, walk{shard: shard}, walk{shard: shard, workers: true})
	}
	for len(open) > 0 {
		calls := make([]*Call, len(open))
		for i, w := range open {
			index, states := s.keyspace.Keys[w.shard].Index, schema.Letters(model.Dispatched, model.Running)
			if w.workers {
				index, states = s.keyspace.Keys[w.shard].Workers, model.StatusCode(model.WorkerStatuses...)
			}
			calls[i] = s.scripts.indexedCall(w.shard, index, states, w.from)
		}
		if err := s.bulk(ctx, calls); err != nil {
			return err
		}
		var more []walk
		var lists []*Call
		for i, w := range open {
			from, entries := readIndexed(calls[i].Reply)
			if these := readListed(entries, w.workers); len(these) > 0 {
				lists = append(lists, s.scripts.relistCall(w.shard, these))
			}
			if w.from = from; from != "" {
				more = append(more, w)
			}
		}
		if err := s.bulk(ctx, lists); err != nil {
			return err
		}
		open = more
	}
	return nil
}

func (s *format) bulk(ctx context.Context, calls []*Call) error {
	s.runner.DoBulk(ctx, "open", calls)
	return FirstError(calls)
}

// readListed parses entries of the form <scope>/<state letter>/<name>.
func readListed(entries []string, workers bool) (these []listed) {
	for _, e := range entries {
		if p := strings.Split(e, "/"); len(p) == 4 {
			these = append(these, listed{workers, model.Scope{Tenant: p[0], Workspace: p[1]}, p[3]})
		}
	}
	return these
}
