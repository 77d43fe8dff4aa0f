package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// readStep is how many large tasks are read before checking for room for more.
const readStep = 8

// reading is a part of some tasks that is being read: small tasks of a shard together, large ones separately and only when they
// are requested.
type reading struct {
	service *Service
	op      string
	part    part
	refs    []*schema.TaskRef // resolved
	tasks   []*model.Task     // nil: not found, or not read yet
	bytes   []int             // size of each of them
	large   []bool            // and not read yet
}

// read reads a part of resolved tasks, except for the large ones.
func (s *Service) read(ctx context.Context, op string, refs []*schema.TaskRef, p part) (*reading, error) {
	n := len(refs)
	rd := &reading{service: s, op: op, part: p, refs: refs, tasks: make([]*model.Task, n), bytes: make([]int, n), large: make([]bool, n)}
	there := make([]int, 0, n)
	for i, r := range refs {
		if r.Exists {
			there = append(there, i)
		}
	}
	return rd, rd.take(ctx, schema.ByShard(there, readAtOnce, func(i int) int { return refs[i].Shard }), rd.together)
}

func (rd *reading) together(group []int) *store.Call {
	refs := make([]*schema.TaskRef, len(group))
	for j, i := range group {
		refs[j] = rd.refs[i]
	}
	return rd.service.getTogether(refs, rd.part)
}

func (rd *reading) alone(group []int) *store.Call {
	return rd.service.GetCall(rd.refs[group[0]], rd.part)
}

// take reads tasks by position, with one call for each group.
func (rd *reading) take(ctx context.Context, groups [][]int, callOf func(group []int) *store.Call) error {
	calls := store.CallEach(groups, callOf)
	rd.service.store.DoBulk(ctx, rd.op, calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	var found []*model.Task
	for n, group := range groups {
		for j, i := range group {
			reply, read := wasRead(calls[n].Reply, j)
			if rd.large[i] = !read; !read {
				continue
			}
			rd.bytes[i] = reply.Bytes()
			if v := NewView(rd.refs[i], readView(reply)); v != nil {
				rd.tasks[i] = v.Task
				found = append(found, v.Task)
			}
		}
	}
	return rd.service.liveByWorkers(ctx, rd.op, found)
}

// at returns the i-th task, nil if it is gone, and its size. If it is large, it is read now with some of the tasks after it.
func (rd *reading) at(ctx context.Context, i int) (*model.Task, int, error) {
	if rd.large[i] {
		var next [][]int
		for j := i; j < len(rd.refs) && len(next) < readStep; j++ {
			if rd.large[j] {
				next = append(next, []int{j})
			}
		}
		if err := rd.take(ctx, next, rd.alone); err != nil {
			return nil, 0, err
		}
	}
	return rd.tasks[i], rd.bytes[i], nil
}

// readAll reads a part of many resolved tasks; one that is gone is nil.
func (s *Service) readAll(ctx context.Context, op string, refs []*schema.TaskRef, p part) ([]*model.Task, error) {
	rd, err := s.read(ctx, op, refs, p)
	for i := 0; err == nil && i < len(refs); i++ {
		_, _, err = rd.at(ctx, i)
	}
	return rd.tasks, err
}
