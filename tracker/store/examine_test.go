package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// dump returns everything that a server stores.
func dump(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range c.Keys(t.Context(), "*").Val() {
		all[key] = c.Dump(t.Context(), key).Val()
	}
	return all
}

func examine(t *testing.T, o tracker.Options) *tracker.Examination {
	t.Helper()
	is, err := tracker.Examine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// An examination changes neither an unused Redis nor one in use.
func TestAnExaminationChangesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	admin := s.Client()
	is := examine(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 10 * time.Second})
	if is.Shards != 0 || is.Running != 0 || len(is.Denied) != 0 || is.DeniedErr != nil || is.ScriptsErr != nil || is.Scripts < 50 ||
		is.StoredErr != nil || is.DurabilityErr != nil || len(is.Nodes) != 1 || is.Nodes[0].Err != nil || is.Nodes[0].Version == "" {
		t.Errorf("%+v", is)
	}
	if left := dump(t, admin); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
	facts := stats.Facts{Version: "1", Settings: map[string]string{"signing-keys": "aaaa", "shards": "0001"}}
	tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL(), Shards: 6, Replica: facts})
	if _, err := tr.Stats.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	facts.Settings = map[string]string{"signing-keys": "bbbb", "shards": "0001"}
	is = examine(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 10 * time.Second, Replica: facts})
	if is.Shards != 6 || is.Running != 1 || !slices.Equal(is.Differing, []string{"signing-keys"}) {
		t.Errorf("%+v", is)
	}
	for key := range dump(t, admin) {
		if strings.Contains(key, "doctor") {
			t.Errorf("it left %s", key)
		}
	}
}

// Exactly the commands are named that scripts use and the user may not run.
func TestAnExaminationNamesWhatTheUserMayNot(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	admin := s.Client()
	rules, err := redistest.DeployedACL()
	if err != nil {
		t.Fatal(err)
	}
	allow := func(rules string) tracker.Options {
		t.Helper()
		args := []any{"ACL", "SETUSER", "limited", "reset", "on", ">secret"}
		for _, rule := range strings.Fields(rules) {
			if rule != "user" && rule != "lubdub" && rule != "on" && !strings.HasPrefix(rule, "#") && !strings.HasPrefix(rule, ">") {
				args = append(args, rule)
			}
		}
		if err := admin.Do(context.Background(), args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return tracker.Options{RedisURL: "redis://limited:secret@" + admin.Options().Addr + "/0", RedisTimeout: 10 * time.Second}
	}
	if is := examine(t, allow(rules)); len(is.Denied) != 0 || is.DeniedErr != nil || is.ScriptsErr != nil || is.StoredErr != nil {
		t.Errorf("with all that is deployed: %+v", is)
	}
	for _, command := range []string{"zadd", "hset", "xadd", "publish", "time", "del", "zrangebylex", "set", "sadd", "xtrim", "pexpire"} {
		is := examine(t, allow(rules+" -"+command))
		if !slices.Equal(is.Denied, []string{command}) {
			t.Errorf("without %s: %v %v", command, is.Denied, is.DeniedErr)
		}
	}
	if is := examine(t, allow(strings.ReplaceAll(rules, "~lubdub:*", "~other:*"))); !slices.Equal(is.Denied, []string{"eval"}) {
		t.Errorf("without the keys: %v", is.Denied)
	}
	if is := examine(t, allow(strings.ReplaceAll(rules, "+script|load", ""))); is.ScriptsErr == nil {
		t.Error("scripts are loaded by who may not")
	}
	if left := dump(t, admin); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
}

// A Redis that does not exist, and a wrong password, are errors that reveal no password.
func TestAnExaminationOfNothing(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	for _, at := range []string{"redis://ann:verysecret@127.0.0.1:1", "redis://ann:verysecret@" + s.Client().Options().Addr, "redsi://x"} {
		url := at + "/0"
		is, err := tracker.Examine(t.Context(), tracker.Options{RedisURL: url, RedisTimeout: time.Second})
		if err == nil || strings.Contains(err.Error(), "verysecret") {
			t.Errorf("%s: %v %v", url, is, err)
		}
	}
}

// On a Cluster every primary is examined.
func TestAnExaminationOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, time.Hour)
	is := examine(t, tracker.Options{RedisURL: c.URL(), RedisTimeout: 10 * time.Second})
	if len(is.Nodes) != 3 || len(is.Denied) != 0 || is.DeniedErr != nil || is.ScriptsErr != nil || is.StoredErr != nil || is.Shards != 0 {
		t.Errorf("%+v", is)
	}
}
