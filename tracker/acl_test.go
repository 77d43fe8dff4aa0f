package tracker_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// ofTheClient are the commands of the ACL that no script calls, without Cluster and with it. TestNothingInTheACLIsIdle shows for each
// that Lubdub needs it.
var (
	ofTheClient   = []string{"evalsha", "script|load", "hsetnx", "info", "ping", "select", "subscribe"}
	ofItOnCluster = []string{"asking", "cluster|slots", "eval"}
	ofDurability  = map[string]store.Durability{"config|get": store.Fsync, "wait": store.Replicated}
)

// granted returns the commands in deploy/redis/users.acl.
func granted(t *testing.T) (commands []string) {
	t.Helper()
	rules, err := redistest.DeployedACL()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range strings.Fields(rules) {
		if command, ok := strings.CutPrefix(rule, "+"); ok {
			if strings.HasPrefix(command, "@") {
				t.Errorf("%s grants a whole category; name the commands", rule)
			}
			commands = append(commands, command)
		}
	}
	if !strings.Contains(rules, "-@all ") || strings.Contains(rules, "allkeys") || strings.Contains(rules, "nopass") {
		t.Errorf("the rules give more than their list: %s", rules)
	}
	if !slices.IsSorted(commands) {
		t.Error("the commands are not sorted")
	}
	return commands
}

// ofScripts returns the commands that scripts call: they are in quotes and capitals.
func ofScripts(t *testing.T, client *redis.Client) []string {
	t.Helper()
	known, err := client.CommandList(t.Context(), nil).Result()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	scripts := redistest.Real(t, redistest.WallClock).Scripts
	for _, name := range scripts.Names() {
		for _, m := range regexp.MustCompile(`'([A-Z]+)'`).FindAllStringSubmatch(scripts.Get(name).Source, -1) {
			if command := strings.ToLower(m[1]); slices.Contains(known, command) {
				found[command] = true
			}
		}
	}
	var commands []string
	for c := range found {
		commands = append(commands, c)
	}
	return commands
}

// The ACL contains what is used and nothing else. Every other test on a real Redis shows that it is enough: Lubdub is this user there.
func TestNothingInTheACLIsIdle(t *testing.T) {
	t.Parallel()
	plain := redistest.StartServer(t)
	admin := plain.Client()
	defer func() { _ = admin.Close() }()
	want := slices.Concat(ofScripts(t, admin), ofTheClient, ofItOnCluster, slices.Collect(maps.Keys(ofDurability)))
	slices.Sort(want)
	got := granted(t)
	for _, c := range got {
		if !slices.Contains(want, c) {
			t.Errorf("deploy/redis/users.acl grants %s, which nothing uses", c)
		}
	}
	for _, c := range want {
		if !slices.Contains(got, c) {
			t.Errorf("deploy/redis/users.acl lacks %s", c)
		}
	}
	url := strings.TrimSuffix(plain.URL(), "/0") + "/1" // any database but the first has to be selected
	for _, c := range ofTheClient {
		wantDenied(t, admin, c, func() { useAll(url, "") })
	}
	if has, err := redistest.HasWAITAOF(); err != nil {
		t.Fatal(err)
	} else if has { // this is called instead
		delete(ofDurability, "config|get")
		ofDurability["waitaof"] = store.Fsync
	}
	for c, durability := range ofDurability {
		wantDenied(t, admin, c, func() { useAll(url, durability) })
	}

	node, other := clusterOfTwo(t)
	admin = node.Client()
	defer func() { _ = admin.Close() }()
	for _, c := range ofItOnCluster {
		on := admin
		if c == "asking" { // of the node to which the slot moves
			on = other.Client()
			defer func() { _ = on.Close() }()
		}
		wantDenied(t, on, c, func() { useAll("redis+cluster://"+redistest.As(node.Addr), "") })
	}
}

// wantDenied removes one command from Lubdub's user and requires that it is missed.
func wantDenied(t *testing.T, admin *redis.Client, command string, use func()) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		admin.Do(ctx, "acl", "setuser", redistest.User, "-"+command).Err(), admin.ACLLogReset(ctx).Err(), admin.ScriptFlush(ctx).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	use()
	log, err := admin.ACLLog(ctx, 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(log, func(e *redis.ACLLogEntry) bool { return e.Reason == "command" && e.Object == command }) {
		t.Errorf("deploy/redis/users.acl grants %s, and nothing missed it: %+v", command, log)
	}
	if err := admin.Do(ctx, "acl", "setuser", redistest.User, "+"+command).Err(); err != nil {
		t.Fatal(err)
	}
}

// useAll makes a tracker use each command that no script calls. Errors are ignored.
func useAll(url string, durability store.Durability) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tr, err := tracker.Open(ctx, tracker.Options{RedisURL: url, Logger: trackertest.Quiet, Durability: durability,
		RedisTimeout: 4 * time.Second})
	if err != nil {
		return
	}
	defer func() { _ = tr.Close(ctx) }()
	newTask := model.NewTask{Scope: trackertest.Scope}
	if newTask.Validate(time.Now()) != nil {
		return
	}
	n := model.NewWorker{Scope: trackertest.Scope, Queue: "q", Types: []string{"t"}, MaxConcurrent: 1}
	if r, err := tr.Workers.Register(ctx, n); err == nil {
		_, _ = tr.Queues.Claim(ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: r.WorkerID, Queue: "q", Max: 1,
			Wait: 100 * time.Millisecond})
	}
	_ = tr.Tasks.CreateBatch(ctx, []model.NewTask{newTask})
	_ = tr.Beats.Tick()
}

// clusterOfTwo is a Cluster whose first node has every slot and is moving those of all shards to the second.
func clusterOfTwo(t *testing.T) (from, to *redistest.Server) {
	t.Helper()
	ctx := t.Context()
	args := []string{"--cluster-enabled", "yes", "--databases", "1"}
	from, to = redistest.StartServer(t, args...), redistest.StartServer(t, args...)
	giver, taker := from.Client(), to.Client()
	t.Cleanup(func() { _, _ = giver.Close(), taker.Close() })
	if err := giver.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(to.Addr, ":")
	if err := giver.ClusterMeet(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	trackertest.Eventually(t, "both nodes know each other", func() bool {
		return strings.Contains(clusterInfo(t, giver), "cluster_known_nodes:2") && strings.Contains(clusterInfo(t, taker), "cluster_state:ok")
	})
	for shard := range 64 {
		slot := giver.ClusterKeySlot(ctx, fmt.Sprintf("lubdub:{%d}:clock", shard)).Val()
		for _, err := range []error{
			taker.Do(ctx, "cluster", "setslot", slot, "importing", giver.ClusterMyID(ctx).Val()).Err(),
			giver.Do(ctx, "cluster", "setslot", slot, "migrating", taker.ClusterMyID(ctx).Val()).Err(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return from, to
}

func clusterInfo(t *testing.T, c *redis.Client) string {
	t.Helper()
	info, err := c.ClusterInfo(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return info
}
