package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// balancers are real ones, as the tests configure them: haproxy requests /readyz, and also removes a server that answers ten consecutive
// requests with 503; nginx removes a server that has answered one request with 503, in each of its two processes separately. Both send
// requests there again after no more than a period.
var balancers = map[string]struct {
	find   []string // the program
	args   []string // %s is the file
	config func(dir, listen string, hosts []string, period time.Duration) string
}{
	"haproxy": {[]string{"haproxy", "/usr/sbin/haproxy"}, []string{"-db", "-f"},
		func(_, listen string, hosts []string, period time.Duration) string {
			var servers strings.Builder
			for i, host := range hosts {
				fmt.Fprintf(&servers, "  server s%d %s\n", i, host)
			}
			return fmt.Sprintf(`global
  maxconn 8000
defaults
  mode http
  retries 0
  timeout connect 1s
  timeout client 30s
  timeout server 10s
frontend clients
  bind %s
  default_backend replicas
backend replicas
  balance roundrobin
  option httpchk GET /readyz
  default-server check inter %dms rise 3 fall 1 observe layer7 error-limit 10 on-error mark-down
%s`, listen, period.Milliseconds()*32/100, &servers)
		}},
	"nginx": {[]string{"nginx", "/usr/sbin/nginx"}, []string{"-g", "daemon off;", "-c"},
		func(dir, listen string, hosts []string, period time.Duration) string {
			var servers strings.Builder
			for _, host := range hosts {
				fmt.Fprintf(&servers, "    server %s max_fails=1 fail_timeout=%ds;\n", host, int(period.Seconds()))
			}
			return strings.ReplaceAll(fmt.Sprintf(`worker_processes 2;
pid DIR/pid;
error_log DIR/log crit;
user root root;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  upstream replicas {
%s    keepalive 256;
  }
  server {
    listen %s;
    location / {
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout 1s;
      proxy_read_timeout 10s;
      proxy_next_upstream error timeout http_502 http_503;
    }
  }
}
`, &servers, listen), "DIR", dir)
		}},
}

// startBalancer starts one of them before servers, which need not be there yet, and gives its address.
func startBalancer(t *testing.T, name string, hosts []string, period time.Duration) string {
	t.Helper()
	b := balancers[name]
	program := balancerProgram(t, name)
	listen, dir := redistest.FreeAddr(), t.TempDir()
	file := filepath.Join(dir, "conf")
	if err := os.WriteFile(file, []byte(b.config(dir, listen, hosts, period)), 0o600); err != nil {
		t.Fatal(err)
	}
	runBalancer(t, name, listen, program, append(append([]string(nil), b.args...), file)...)
	return listen
}

// balancerProgram finds one of them, which may be installed outside a user's PATH.
func balancerProgram(t *testing.T, name string) string {
	t.Helper()
	for _, name := range balancers[name].find {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("no %s; run `make test`, which installs it", name)
	return ""
}

// runBalancer starts a program that listens on an address until the test ends.
func runBalancer(t *testing.T, name, listen, program string, args ...string) {
	t.Helper()
	output := &lockedBuffer{}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // nginx stops its own children then
		<-exited
	})
	until(t, name+" listens", func() bool {
		select {
		case <-exited:
			t.Fatalf("%s ended: %s", name, output)
		default:
		}
		c, err := net.DialTimeout("tcp", listen, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// awaitBalanced returns when a balancer sends requests to a server that answers.
func awaitBalanced(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	until(t, "the balancer serves", func() bool {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address+"/livez", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// behindBalancers are outages of which balancers draw conclusions: they keep clients from the replicas for a while after it.
func behindBalancers() (behind []outage) {
	still := outage{name: "Redis is frozen", begin: outages[0].begin, end: outages[0].end}
	node := outage{name: "a node of a Cluster is frozen", cluster: true, begin: still.begin, end: still.end}
	killed := outages[1]
	fronts := outage{name: "every front end is killed", begin: func(s *stage) { kill(s.fronts) }, end: func(s *stage) { s.startFronts() }}
	drained := outage{
		name: "every front end is drained",
		begin: func(s *stage) {
			for _, f := range s.fronts {
				f.signal(syscall.SIGTERM)
			}
		},
		end: func(s *stage) {
			for _, f := range s.fronts {
				f.wait()
			}
			s.startFronts()
		},
	}
	for name := range balancers {
		for _, o := range []outage{still, node, killed, fronts, drained} {
			o.brief = o.name == killed.name || name == "haproxy" && o.cluster
			o.name, o.balancer, o.held = o.name+" behind "+name, name, *outageTimeout+time.Second
			behind = append(behind, o)
		}
	}
	return behind
}
