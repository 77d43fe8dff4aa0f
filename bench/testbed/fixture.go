package testbed

import (
	"strings"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// Target is one program under load: the server and its Redis, either of which may be nil, and connections to it.
type Target struct {
	Program string
	Server  *proc.Server
	Redis   *proc.Redis
	Pool    load.Generator
	Tracked int
}

// Address returns the server's host and port.
func (t *Target) Address() string { return strings.TrimPrefix(t.Server.URL, "http://") }

// Stop closes the connections and ends the processes. It may be called again.
func (t *Target) Stop() {
	if t.Pool != nil {
		t.Pool.Close()
	}
	if t.Server != nil {
		t.Server.Stop()
	}
	if t.Redis != nil {
		t.Redis.Stop()
	}
}

// Fixture is a deployment of Lubdub with tasks that beat.
type Fixture struct {
	Target
	Tasks   *requests.Tasks
	Control string // token
	API     *client.Client
}
