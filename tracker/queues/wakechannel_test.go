package queues_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Channels are shared by all databases of a Redis. What becomes ready in one database wakes the claims that wait there, and none
// of another deployment.
func TestDatabasesDoNotWakeEachOther(t *testing.T) {
	t.Parallel()
	server := redistest.StartServer(t)
	client := server.Client()
	defer func() { _ = client.Close() }()
	for db, own := range map[string]string{"0": "lubdub:wake", "3": "lubdub:wake:3"} {
		tr := trackertest.Open(t, tracker.Options{RedisURL: strings.TrimSuffix(server.URL(), "0") + db, Shards: 1,
			RedisTimeout: 10 * time.Second})
		w, err := tr.Workers.Register(t.Context(), model.NewWorker{Scope: trackertest.Scope, Queue: "q", Types: []string{"x"}, MaxConcurrent: 1})
		if err != nil {
			t.Fatal(err)
		}
		sub := client.Subscribe(t.Context(), "lubdub:wake", "lubdub:wake:3")
		for range 2 {
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan []*model.Envelope, 1)
		go func() {
			tasks, err := tr.Queues.Claim(t.Context(), queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: w.WorkerID, Queue: "q", Max: 1,
				Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			got <- tasks
		}()
		trackertest.Eventually(t, "the claim waits", func() bool { return tr.Queues.WaitingClaims() == 1 })
		n := model.NewTask{Scope: trackertest.Scope, TaskID: "t1", Queue: "q", Type: "x"}
		if err := n.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Tasks.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if tasks := <-got; len(tasks) != 1 {
			t.Errorf("database %s: %d tasks", db, len(tasks))
		}
		if err := client.Publish(t.Context(), "lubdub:wake", "the last").Err(); err != nil {
			t.Fatal(err)
		}
		received := 0
		for {
			m, err := sub.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			word := m.(*redis.Message)
			if word.Payload == "the last" {
				break
			}
			if received++; word.Channel != own {
				t.Errorf("database %s: %q on %s", db, word.Payload, word.Channel)
			}
		}
		if received == 0 {
			t.Errorf("database %s: no claim was woken", db)
		}
		_ = sub.Close()
	}
}
