package queues

import (
	"context"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// MaxPausedQueues is how many queues of one workspace may be paused at a time: every shard keeps each of them until it is resumed.
const MaxPausedQueues = 1000

// limitShard is the shard that decides whether a workspace has too many paused queues.
const limitShard = 0

// Pause stops claims from a queue: its tasks keep waiting, new tasks are accepted, and workers keep what they hold. It reports
// whether that created the queue, which was not known before. The reason goes into the event; it may be empty.
func (s *Service) Pause(ctx context.Context, scope model.Scope, queue, reason string) (created bool, err error) {
	if err := model.CheckText("reason", reason, model.MaxReasonBytes); err != nil {
		return false, err
	}
	ctx = s.store.Within(ctx, 0)
	_, err = s.Get(ctx, scope, queue)
	if created = model.CodeOf(err) == QueueNotFound; err != nil && !created {
		return false, err
	}
	re, err := s.store.Do(ctx, "pause", s.pauseCall(limitShard, scope, queue, pauseArgs{pause: true, checkLimit: true, reason: reason}))
	if err != nil {
		return false, err
	}
	if readPause(re) {
		return false, &model.Error{Code: model.Overloaded, TooMany: true, Op: "pause", RetryAfter: time.Minute,
			Message: fmt.Sprintf("%d queues are paused in this workspace, which is the most; "+
				"resume those that need not be, such as names that were never used", MaxPausedQueues)}
	}
	return created, s.pauseOthers(ctx, "pause", scope, queue, pauseArgs{pause: true, reason: reason})
}

// Resume allows claims again and wakes those that wait.
func (s *Service) Resume(ctx context.Context, scope model.Scope, queue string) error {
	ctx = s.store.Within(ctx, 0)
	if err := s.pauseOthers(ctx, "resume", scope, queue, pauseArgs{}); err != nil {
		return err
	}
	_, err := s.store.Do(ctx, "resume", s.pauseCall(limitShard, scope, queue, pauseArgs{wake: true}))
	return err
}

// pauseOthers pauses or resumes the queue in every shard but the judge, since each shard hands out its own tasks. A pause sets the
// judge first, a resume sets it last. Repeating the call completes one that failed halfway.
func (s *Service) pauseOthers(ctx context.Context, op string, scope model.Scope, queue string, a pauseArgs) error {
	var calls []*store.Call
	for shard := range s.store.Keys {
		if shard != limitShard {
			calls = append(calls, s.pauseCall(shard, scope, queue, a))
		}
	}
	s.store.DoAll(ctx, op, calls)
	return store.FirstError(calls)
}
