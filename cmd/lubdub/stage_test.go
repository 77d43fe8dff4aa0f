package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// stage is a deployment of two replicas of each role, and the crowd that beats to it.
type stage struct {
	*testing.T
	*crowd
	redis   *redistest.Server  // of a Cluster its first node
	cluster *redistest.Cluster // nil: the server is alone
	listen  []string           // where the front ends listen, for a balancer that must know; nil: anywhere
	fronts  []*running
	backs   []*running
	hosts   *replicas
	period  time.Duration // health-check-period
	lost    time.Time     // since when the store lost what it had acknowledged; zero: it lost nothing
}

// replicas is a load balancer whose targets change.
type replicas struct {
	mu     sync.Mutex
	spread spread
}

func (r *replicas) set(hosts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spread.hosts = hosts
}

func (r *replicas) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	hosts := r.spread.hosts
	r.mu.Unlock()
	req = req.Clone(req.Context())
	req.URL.Host = hosts[int(r.spread.next.Add(1))%len(hosts)]
	return r.spread.RoundTripper.RoundTrip(req)
}

func (s *stage) serve(role, listen string) *running {
	url := s.redis.URL()
	if s.cluster != nil {
		url = s.cluster.URL()
	}
	return launch(s.T, withKey, "serve", "--redis", url, "--shards", fmt.Sprint(stageShards), "--roles", role, "--redis-timeout", "2s",
		"--worker-heartbeat-interval", (*outageTimeout / 3).String(),
		"--health-check-period", s.period.String(), "--drain-delay", (s.period / 2).String(), "--listen", listen, "--admin-listen", "127.0.0.1:0")
}

const stageShards = 16

func (s *stage) startFronts() {
	s.fronts = nil
	for i := range 2 {
		listen := "127.0.0.1:0"
		if s.listen != nil {
			listen = s.listen[i]
		}
		s.fronts = append(s.fronts, s.serve("api", listen))
	}
	var hosts []string
	for _, f := range s.fronts {
		url, _ := f.urls()
		hosts = append(hosts, strings.TrimPrefix(url, "http://"))
	}
	if s.listen == nil {
		s.hosts.set(hosts)
	}
}

// balance puts a balancer between the clients and the front ends.
func (s *stage) balance(name string) {
	s.listen = []string{redistest.FreeAddr(), redistest.FreeAddr()}
	s.hosts.set([]string{startBalancer(s.T, name, s.listen, *outageTimeout)})
}

// store is for assertions.
func (s *stage) store() redis.UniversalClient {
	if s.cluster == nil {
		return s.redis.Client()
	}
	var addrs []string
	for _, node := range s.cluster.Servers {
		addrs = append(addrs, node.Addr)
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Protocol: 2, DisableIdentity: true})
}

func (s *stage) startBacks() {
	s.backs = []*running{s.serve("sweeper", "127.0.0.1:0"), s.serve("sweeper", "127.0.0.1:0")}
	for _, b := range s.backs {
		b.urls()
	}
}

func kill(replicas []*running) {
	for _, r := range replicas {
		r.signal(syscall.SIGKILL)
	}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) config(name, value string) {
	s.Helper()
	c := s.redis.Client()
	defer func() { _ = c.Close() }()
	s.must(c.ConfigSet(context.Background(), name, value).Err())
}

// stage sets the scene of an outage.
func (o *outage) stage(t *testing.T) *stage {
	s := &stage{T: t, hosts: &replicas{spread: spread{RoundTripper: &http.Transport{MaxIdleConnsPerHost: 256}}}}
	if o.cluster {
		s.cluster = redistest.StartCluster(t, 3, 0, time.Minute) // which waits longer for the frozen node than the outage lasts
		s.redis = s.cluster.Servers[0]
	} else {
		s.redis = redistest.StartServer(t, o.redis...)
	}
	if s.period = o.period; o.balancer != "" {
		s.period = *outageTimeout
		s.balance(o.balancer)
	}
	s.startFronts()
	s.startBacks()
	s.crowd = newCrowd(t, &http.Client{Transport: s.hosts, Timeout: 5 * time.Second}, *outageTimeout)
	if o.balancer != "" {
		s.batch = 1
		awaitBalanced(t, s.hosts.spread.hosts[0])
	}
	return s
}
