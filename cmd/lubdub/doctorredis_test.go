package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/redistest"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// A Redis is checked without a server or a context, and next to a running one; each finding has a remedy.
func TestDoctorQueriesRedisDirectly(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	redis := redistest.StartServer(t)
	d := &desk{t: t, environ: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}
	d.is(d.run("doctor", "--redis", redis.URL()), exit.OK, "ok   redis-version", "ok   redis-policy", "warn redis-persistence",
		"-> run redis-cli CONFIG SET appendonly yes", "ok   acl", "ok   scripts", "redis-round-trip", "ahead of this host",
		"No deployment has used this Redis yet", "No replica is running with this Redis")
	serving := newDesk(t, token.RoleViewer)
	url := serving.redis
	sameConfig := &desk{t: t, environ: append(slices.Clone(withKey), d.environ[0], "LUBDUB_SHARDS=2", "LUBDUB_LOG_LEVEL=error", patientRedis,
		"LUBDUB_WORKER_HEARTBEAT_INTERVAL=10m", "LUBDUB_LISTEN=127.0.0.1:0", "LUBDUB_ADMIN_LISTEN=127.0.0.1:0")}
	until(t, "the replica has registered", func() bool {
		return strings.Contains(sameConfig.ok(sameConfig.run("doctor", "--redis", url)).out, "those of 1 replica are the same")
	})
	d.is(d.run("doctor", "--redis", url), exit.OK, "1 replica differ in", "signing-keys", "The deployment in this Redis has 2 shards")
	other := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_SHARDS=9")}
	other.is(other.run("doctor", "--redis", url), exit.Failed, "fail shards", "set shards to 2")
	other.is(other.run("doctor", "--redis", url, "-o", "json"), exit.Failed, `"healthy":`, `"code":`, `"acl"`)
	if err := redis.Client().ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	d.is(d.run("doctor", "--redis", redis.URL()), exit.Failed, "fail redis-policy",
		"-> run redis-cli CONFIG SET maxmemory-policy noeviction")
	a := d.is(d.run("doctor", "--redis", "redis://ann:verysecret@127.0.0.1:1"), exit.Failed, "fail redis ", "cannot reach Redis")
	if strings.Contains(a.out+a.err, "verysecret") {
		t.Error("the password is printed")
	}
	d.is(d.run("doctor", "--redis", "embedded"), exit.Misuse, "lives in its server's process")
	d.is(d.run("doctor", "--redis", "nonsense"), exit.Misuse, "redis")
}
