package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/faultproxy"
	"github.com/lubdub-io/lubdub/internal/redistest"
)

// startSteps are the steps of a start, in their order, each with what the process sends for it.
var startSteps = []struct{ name, sends string }{
	{"the first contact", ""}, // there is trouble before it starts
	{"the map of servers", "slots|get-master-addr-by-name|persistence"},
	{"the schema check", "hmget"},
	{"the script load", "script\r\n$4\r\nload"},
	{"the revocations", "lubdub:{0}:revocations"},
	{"the first beats", ":clock"},
}

var startTroubles = []string{"frozen", "killed", "unreachable"}

// startCase is one cell of the table.
type startCase struct {
	step    string
	trouble string
	home    bool // the trouble is at the server that has the home shard
}

// Redis, or one server of a Cluster, goes away at each step of a start, in each way. From the first connection that the server
// accepts, every answer comes in time: 200 for what can be reached, and 503 for the rest. It never accepts a token that was revoked.
// Here are the cells that differ most; TestLongStartsDuringFailures plays all.
func TestStartsDuringFailures(t *testing.T) {
	t.Parallel()
	playStarts(t, func(form string, c startCase) bool {
		switch {
		case c.home || form != "Cluster":
			return c.trouble == "frozen" && (c.step == "the schema check" || c.step == "the revocations")
		case c.trouble == "frozen":
			return true
		}
		return c.step == "the first contact"
	})
}

func playStarts(t *testing.T, wanted func(form string, c startCase) bool) {
	for _, form := range []string{"standalone", "Sentinel", "Cluster"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := newStartStage(t, form)
			for _, step := range startSteps {
				for _, trouble := range startTroubles {
					for _, home := range []bool{true, false} {
						c := startCase{step.name, trouble, home}
						if (home || form == "Cluster") && wanted(form, c) {
							where := map[bool]string{true: "at home", false: "elsewhere"}[home]
							t.Run(strings.Join([]string{step.name, trouble, where}, ", "), func(t *testing.T) {
								redistest.Measured(t, func(t *testing.T) redistest.TooLong { return s.play(t, c, step.sends) })
							})
						}
					}
				}
			}
		})
	}
}

// startStage is a deployment of Redis with a proxy in front of each server, and what a Lubdub has left there.
type startStage struct {
	url     string
	servers []*redistest.Server
	proxies []*faultproxy.Proxy // of each server, in their order
	watch   []*faultproxy.Proxy // these, and that of the Sentinel
	tasks   []startTask
	revoked string // a token
}

// startTask is a running task.
type startTask struct {
	id, token string
	on        int // the server that has it
}

// startTimeout is the redis-timeout.
const startTimeout = 500 * time.Millisecond

func newStartStage(t *testing.T, form string) *startStage {
	s := &startStage{}
	switch form {
	case "Cluster":
		cluster := redistest.StartCluster(t, 3, 0, time.Hour)
		s.add(t, cluster.Servers...)
		s.announceProxies(t)
		s.url = "redis+cluster://" + redistest.As(s.proxies[0].Addr+","+s.proxies[1].Addr+","+s.proxies[2].Addr)
	case "Sentinel":
		s.add(t, redistest.StartServer(t))
		seen := *s.servers[0]
		seen.Addr = s.proxies[0].Addr
		sentinel := redistest.StartSentinels(t, 1, "main", &seen, 0, time.Hour)[0]
		s.watch = append(s.watch, faultproxy.Start(t, sentinel.Addr))
		s.url = "redis+sentinel://" + s.watch[1].Addr + "/main/0?" + redistest.Credentials()
	default:
		s.add(t, redistest.StartServer(t))
		s.url = "redis://" + redistest.As(s.proxies[0].Addr)
	}
	s.fill(t)
	return s
}

func (s *startStage) add(t *testing.T, servers ...*redistest.Server) {
	for _, server := range servers {
		s.servers = append(s.servers, server)
		s.proxies = append(s.proxies, faultproxy.Start(t, server.Addr))
	}
	s.watch = append(s.watch, s.proxies...)
}

// announceProxies has the nodes of a Cluster name the proxies to clients and to each other.
func (s *startStage) announceProxies(t *testing.T) {
	for i, server := range s.servers {
		_, port, _ := net.SplitHostPort(s.proxies[i].Addr)
		_, own, _ := net.SplitHostPort(server.Addr)
		bus, _ := strconv.Atoi(own)
		s.each(t, func(c *redis.Client, j int) error {
			if i != j {
				return nil
			}
			return errors.Join(c.ConfigSet(t.Context(), "cluster-announce-bus-port", strconv.Itoa(bus+10_000)).Err(),
				c.ConfigSet(t.Context(), "cluster-announce-port", port).Err())
		})
	}
	until(t, "all nodes know the proxies", func() bool {
		all := true
		s.each(t, func(c *redis.Client, _ int) error {
			nodes, err := c.ClusterNodes(t.Context()).Result()
			for _, p := range s.proxies {
				all = all && strings.Contains(nodes, p.Addr+"@")
			}
			return err
		})
		return all
	})
}

func (s *startStage) each(t *testing.T, do func(c *redis.Client, i int) error) {
	t.Helper()
	for i, server := range s.servers {
		c := server.Client()
		err := do(c, i)
		_ = c.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fill has a Lubdub create running tasks, three on each server at least, and revoke a token.
func (s *startStage) fill(t *testing.T) {
	r := launch(t, withKey, append([]string{"serve", "--redis", s.url, "--shards", "12"}, anyPort...)...)
	url, _ := r.urls()
	for count := make([]int, len(s.servers)); slices.Min(count) < 3; {
		e := createRunning(t, url, `{"heartbeatTimeoutMs":3600000}`)
		s.each(t, func(c *redis.Client, i int) error {
			keys, err := c.Keys(t.Context(), "*"+e.TaskID+"*").Result()
			if len(keys) > 0 {
				if count[i]++; count[i] <= 3 {
					s.tasks = append(s.tasks, startTask{e.TaskID, e.TaskToken, i})
				}
			}
			return err
		})
	}
	code, token, stderr := command(withKey, "token", "--role", "admin", "--subject", "gone")
	if code != exitOK {
		t.Fatal(stderr)
	}
	s.revoked = strings.TrimSpace(token)
	if status, body := request("POST", url+"/v1/tokens:revoke", adminToken(t), `{"subject":"gone"}`); status != http.StatusOK {
		t.Fatal(status, body)
	}
	r.signal(syscall.SIGTERM)
	r.wait()
}

// home is the server that has the home shard.
func (s *startStage) home(t *testing.T) (home int) {
	s.each(t, func(c *redis.Client, i int) error {
		n, err := c.Exists(t.Context(), "lubdub:{0}:meta").Result()
		if n > 0 {
			home = i
		}
		if err != nil && strings.HasPrefix(err.Error(), "MOVED") {
			return nil
		}
		return err
	})
	return home
}

func (s *startStage) play(t *testing.T, c startCase, sends string) redistest.TooLong {
	s.each(t, func(c *redis.Client, _ int) error { return c.ScriptFlush(t.Context()).Err() })
	at := s.home(t)
	if !c.home {
		at = (at + 1) % len(s.servers)
	}
	begin := sync.OnceFunc(func() {
		switch c.trouble {
		case "frozen":
			s.proxies[at].Pause()
		case "killed":
			s.proxies[at].Refuse()
		default:
			s.proxies[at].Drop()
		}
	})
	var began atomic.Bool
	for _, p := range s.watch {
		p.Intercept(func(request []byte) faultproxy.Action {
			for _, part := range strings.Split(sends, "|") {
				if bytes.Contains(bytes.ToLower(request), []byte(part)) {
					begin()
					began.Store(true)
				}
			}
			return faultproxy.Pass
		})
	}
	lift := func() {
		for _, p := range s.watch {
			p.Intercept(nil)
			p.Resume()
		}
	}
	defer lift()
	if sends == "" {
		begin()
		began.Store(true)
	}
	own := redistest.OwnDelay()
	listen := redistest.FreeAddr()
	r := launch(t, withKey, "serve", "--redis", s.url, "--redis-timeout", startTimeout.String(), "--listen", listen,
		"--admin-listen", "127.0.0.1:0")
	a := s.startClients(t, listen, at)
	exited := func() bool {
		select {
		case <-r.exited:
			return true
		default:
			return false
		}
	}
	until(t, "it serves despite the failure, or waits for its end", func() bool {
		return began.Load() && (a.all(2) || strings.Contains(r.errs.String(), "the start waits for it")) || exited()
	})
	if exited() {
		if !strings.Contains(r.errs.String(), "cannot reach Redis") || sends != "" || !c.home {
			t.Errorf("it ended: %s", r.errs)
		}
		return a.end(t, own)
	}
	if !c.home && strings.Contains(r.errs.String(), "the start waits for it") {
		t.Errorf("it waits for a server that it does not need: %s", r.errs)
	}
	a.lifted.Store(true)
	lift()
	a.forget()
	until(t, "all is well after the trouble", func() bool { return a.all(1) && a.good() })
	r.signal(syscall.SIGKILL)
	r.wait()
	return a.end(t, own)
}
