package tracker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

const crowdOf = 300 // workers of one machine, each with a record of the largest size

// largeWorkers registers, selects, lists and drains large workers; one of them holds very much.
func (b *bounds) largeWorkers() {
	b.Helper()
	queue, machine := longest("crowd", 0), longest("machine", 0)
	var types []string
	for i := range 40 {
		types = append(types, longest("type", i))
	}
	for i := range crowdOf {
		b.registered(func(n *model.NewWorker) {
			n.Scope, n.Queue, n.MachineID, n.Types, n.MaxConcurrent = big, queue, machine, types, 5
			n.Name = longest("name", i)
			n.Labels = map[string]string{longest("label", 0): strings.Repeat("v", model.MaxLabelValBytes)}
		})
	}
	b.strangersOf(machine)
	for _, f := range []workers.WorkerFilter{{}, {Queue: "none"}, {Labels: map[string]string{"a": "b"}}, {MachineID: machine},
		{Liveness: model.Late}} {
		f.Scope, f.PageSize = big, 100
		_, err := b.Workers.List(b.Ctx, f)
		b.check("workers", err)
	}
	for _, strategy := range model.Placements {
		s := model.Selector{Scope: big, Queue: queue, Type: types[1], Strategy: strategy}
		b.check("selector", s.Validate())
		_, err := b.Workers.Select(b.Ctx, s)
		b.check("select", err)
	}
	_, err := b.Workers.Machine(b.Ctx, big, machine)
	b.check("machine", err)
	_, err = b.Workers.Machines(b.Ctx, workers.MachineFilter{Scope: big, PageSize: 100})
	b.check("machines", err)
	b.holder()
	for _, act := range []workers.Act{workers.Cordon, workers.Uncordon} {
		_, err = b.Workers.ActOnMany(b.Ctx, act, workers.WorkerFilter{Scope: big, Queue: queue}, strings.Repeat("<", model.MaxReasonBytes), false)
		b.check(string(act), err)
	}
	_, err = b.Workers.DrainMany(b.Ctx, workers.WorkerFilter{Scope: big, Queue: queue}, workers.Drain{Reason: "r"}, false)
	b.check("drain", err)
	b.Advance(4 * time.Second) // they are silent and end, all at once
	b.MustSweep()
}

// strangersOf gives a machine very many workers that have ended.
func (b *bounds) strangersOf(machine string) {
	b.Helper()
	keys, err := b.Store.Client.Keys(b.Ctx, "lubdub:*:machineworkers:*/"+machine).Result()
	if err != nil || len(keys) != 1 {
		b.Fatal(keys, err)
	}
	pipe := b.Store.Client.Pipeline()
	for i := range many {
		pipe.ZAdd(b.Ctx, keys[0], redis.Z{Member: fmt.Sprintf("F/wkr_%026d", i)})
	}
	b.exec(pipe)
}

// holder is a worker that holds as much as possible, is notified of all of it, loses it and ends.
func (b *bounds) holder() {
	b.Helper()
	const holds = 1000
	queue, kind := longest("holding", 0), longest("type", 0)
	worker := b.registered(func(n *model.NewWorker) {
		n.Scope, n.Queue, n.Types, n.MaxConcurrent = big, queue, []string{kind}, holds
	})
	news := make([]model.NewTask, holds)
	for i := range news {
		news[i] = model.NewTask{Scope: big, TaskID: longest("held", i), RunID: longest("run", 2), Queue: queue, Type: kind}
		b.check("validate", news[i].Validate(b.Store.Clock.Now()))
	}
	for part := range slices.Chunk(news, 500) {
		for _, r := range b.Tasks.CreateBatch(b.Ctx, part) {
			b.check("create", r.Err)
		}
	}
	var inventory []holdings.InventoryItem
	for len(inventory) < holds {
		got, err := b.Queues.Claim(b.Ctx, queues.ClaimRequest{Scope: big, WorkerID: worker, Queue: queue, Max: queues.MaxClaim,
			ClaimID: longest("claim", len(inventory))})
		if err != nil || len(got) == 0 {
			b.Fatalf("%d claimed: %v", len(inventory), err)
		}
		for _, e := range got {
			_, err := b.Beats.Start(b.Ctx, e.Attempt, model.Report{})
			b.check("start", err)
			inventory = append(inventory, holdings.InventoryItem{OwnedAttempt: holdings.OwnedAttempt{TaskID: e.Task.ID, Number: e.Attempt.Number},
				Report: string(longReport)})
		}
	}
	ctx, cancel := context.WithCancel(b.Ctx)
	full, claimed := trackertest.RecordCalls(b.Tracker, "wake_when_free"), make(chan error, 1)
	go func() {
		_, err := b.Queues.Claim(ctx, queues.ClaimRequest{Scope: big, WorkerID: worker, Queue: queue, Max: 1, Wait: queues.MaxClaimWait})
		claimed <- err
	}()
	trackertest.Until(b, func() bool { return len(full()) == b.Tracker.Store.Shards() })
	cancel()
	b.check("claim of a full worker", <-claimed)
	sendBeat := func(items []holdings.InventoryItem) {
		result, err := b.Workers.Beat(b.Ctx, big, worker, workers.WorkerBeat{Inventory: items})
		b.check("beat", err)
		b.Holdings.Notified(result)
	}
	sendBeat(inventory)
	_, err := b.Tasks.CancelRun(b.Ctx, big, longest("run", 2), model.CancelRequest{Reason: strings.Repeat("<", model.MaxReasonBytes)})
	b.check("cancel run", err)
	b.MustSweep() // delivers notices
	sendBeat(inventory)
	b.Advance(time.Second)
	_, err = b.Tasks.CancelRun(b.Ctx, big, longest("run", 2), model.CancelRequest{})
	b.check("cancel run", err)
	for range 15 { // it misses all, for longer than a claim may take
		sendBeat([]holdings.InventoryItem{})
		b.Advance(time.Second)
	}
	_, err = b.Workers.Retire(b.Ctx, big, worker, model.WorkerForced, "")
	b.check("retire", err)
	b.MustSweep()
}

// deepQueue creates very many classes of tasks that the worker cannot run, and very many tasks of one that it can.
func (b *bounds) deepQueue() {
	b.Helper()
	queue := longest("deep", 0)
	var types []string
	for i := range 60 {
		types = append(types, longest("type", i))
	}
	worker := b.registered(func(n *model.NewWorker) {
		n.Scope, n.Queue, n.Types, n.MaxConcurrent, n.MachineID = big, queue, types, 1000, longest("deep", 1)
	})
	for shard := range b.Tracker.Store.Shards() {
		pipe := b.Store.Client.Pipeline()
		for i, n := 0, 0; n < many/2; i++ {
			id := longest("deep", i)
			if b.Tracker.Store.ShardOf(big, id) != shard {
				continue
			}
			class := fmt.Sprintf("%s/%s//%s/%s/%020d/", big, queue, types[n%len(types)], longest("runtime", n%200), n/200)
			pipe.ZAdd(b.Ctx, fmt.Sprintf("lubdub:{%d}:ready", shard), redis.Z{Member: class + fmt.Sprintf("%013d/%s/0/", i, id)})
			if n++; n%1000 == 0 {
				b.exec(pipe)
			}
		}
	}
	news := make([]model.NewTask, 1000)
	for i := range news {
		news[i] = model.NewTask{Scope: big, TaskID: longest("waits", i), RunID: longest("run", 3), Queue: queue, Type: types[0]}
		b.check("validate", news[i].Validate(b.Store.Clock.Now()))
	}
	awaited := []string{"none"} // ends the wait
	for _, n := range news[1:] {
		awaited = append(awaited, n.TaskID)
	}
	for _, r := range b.Tasks.CreateBatch(b.Ctx, news) {
		b.check("create", r.Err)
	}
	_, err := b.Tasks.Wait(b.Ctx, tasks.WaitRequest{Scope: big, TaskIDs: awaited, Wait: tasks.MaxWait})
	b.check("wait", err)
	b.manyQueues()
	_, err = b.Queues.Claim(b.Ctx, queues.ClaimRequest{Scope: big, WorkerID: worker, Queue: queue, Max: queues.MaxClaim})
	b.check("claim", err)
}

// manyQueues lists queues while there are many, each with different workers and tasks.
func (b *bounds) manyQueues() {
	b.Helper()
	for _, write := range []func(redis.Pipeliner, string, string){
		func(p redis.Pipeliner, key, entry string) { p.ZAdd(b.Ctx, key, redis.Z{Member: entry}) },
		func(p redis.Pipeliner, key, entry string) { p.ZRem(b.Ctx, key, entry) },
	} {
		for shard := range b.Tracker.Store.Shards() {
			pipe := b.Store.Client.Pipeline()
			for i := range 2000 {
				queue := longest("queue", i/4)
				write(pipe, fmt.Sprintf("lubdub:{%d}:workers", shard), fmt.Sprintf("}%s/%s/N/%016x/%s", big, queue, i, longest("worker", i)))
				write(pipe, fmt.Sprintf("lubdub:{%d}:ix", shard), fmt.Sprintf("{%s/%s/%s", big, queue, longest("runs", i)))
			}
			b.exec(pipe)
		}
		_, err := b.Queues.List(b.Ctx, big)
		b.check("queues", err)
	}
}
