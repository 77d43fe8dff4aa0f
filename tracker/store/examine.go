package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Examination is what a store is found to be by who has not begun to use it. An error is what could not be done, and why; nil:
// it could be.
type Examination struct {
	Nodes []NodeHealth // that have shards or may get some
	// Denied are the commands that the user may not give of those that scripts do, in their order.
	Denied    []string
	DeniedErr error
	// Scripts is how many were loaded.
	Scripts    int
	ScriptsErr error
	// Durability is why what is set cannot be had.
	DurabilityErr error
	// Shards is into how many the keyspace was cut when a deployment first started there; 0: none has.
	Shards    int
	StoredErr error
	// Replicas are what those that run have said of themselves, as JSON.
	Replicas []json.RawMessage
}

// Examine looks at the store that the options name, as Open would use it, and changes nothing there. What of it cannot be reached
// at all is an error.
func Examine(ctx context.Context, o Options) (*Examination, error) {
	s := &servers{opts: o}
	if err := s.connect(); err != nil {
		return nil, err
	}
	defer func() { _ = s.close() }()
	if s.embedded {
		return nil, errors.New("an embedded Redis lives in its server's process, and cannot be asked from here")
	}
	info, err := s.info(ctx)
	if err != nil {
		return nil, err
	}
	if inCluster(info) && s.single != nil {
		s.becomeCluster()
	}
	d := &durability{servers: s, deadlines: deadlines{o.Timeout}, opts: o}
	look := &examiner{servers: s, scripts: o.Scripts}
	e := &Examination{DurabilityErr: d.checkDurability(ctx, info)}
	e.Nodes = look.everyNode(ctx)
	e.Denied, e.DeniedErr = look.denied(ctx)
	e.Scripts, e.ScriptsErr = look.loadAll(ctx)
	e.Shards, e.Replicas, e.StoredErr = look.stored(ctx)
	return e, nil
}

// examiner asks servers that nothing else uses yet.
type examiner struct {
	servers *servers
	scripts *lua.Set
}

// everyNode asks the primaries, in the order of their addresses.
func (s *examiner) everyNode(ctx context.Context) (found []NodeHealth) {
	var mu sync.Mutex
	err := s.servers.eachPrimary(ctx, func(ctx context.Context, c *redis.Client) error {
		h := s.servers.healthOf(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		found = append(found, h)
		return nil
	})
	if err != nil {
		found = append(found, NodeHealth{Address: redactURL(s.servers.opts.URL), Err: err})
	}
	slices.SortFunc(found, func(a, b NodeHealth) int { return strings.Compare(a.Address, b.Address) })
	return found
}

// commandCall is how scripts give a command.
var commandCall = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)

// commandsOfScripts are those that scripts give, in their order.
func (s *examiner) commandsOfScripts() []string {
	known := map[string]bool{}
	for _, name := range s.scripts.Names() {
		for _, m := range commandCall.FindAllStringSubmatch(s.scripts.Get(name).Source, -1) {
			known[strings.ToLower(m[1])] = true
		}
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// probe calls commands in a script that may not write: Redis checks a user's permissions before that. It adds arguments until there
// are enough, since Redis checks their number first, and returns the commands that were denied. One key stands for all of them.
var probe = `#!lua flags=no-writes
local denied = {}
for _, command in ipairs(ARGV) do
  local args, why = {command}, nil
  repeat
    local reply = redis.pcall(unpack(args))
    why = type(reply) == 'table' and reply.err or ''
    args[#args + 1] = #args > 1 and '0' or command == 'publish' and '` + lua.WakeChannel(0) + `:doctor' or KEYS[1]
  until #args > 9 or not string.find(string.lower(why), 'wrong number of arg')
  if string.find(why, 'NOPERM') or string.find(why, 'ACL failure') or string.find(why, "can't run this command") or
    string.find(why, "can't access") then
    denied[#denied + 1] = command
  end
end
return denied`

// probeKey is one that nothing has.
const probeKey = "lubdub:{0}:doctor"

// denied are the commands of scripts that the user may not give.
func (s *examiner) denied(ctx context.Context) ([]string, error) {
	var args []any
	for _, name := range s.commandsOfScripts() {
		args = append(args, name)
	}
	denied, err := s.servers.client().Eval(ctx, probe, []string{probeKey}, args...).StringSlice()
	if err != nil && strings.HasPrefix(err.Error(), "NOPERM") {
		return []string{"eval"}, nil
	}
	return denied, err
}

// loadAll loads every script, as whoever runs one does sooner or later.
func (s *examiner) loadAll(ctx context.Context) (loaded int, err error) {
	names := s.scripts.Names()
	return len(names), s.servers.eachPrimary(ctx, func(ctx context.Context, c *redis.Client) error {
		for _, name := range names {
			if err := c.ScriptLoad(ctx, s.scripts.Get(name).Source).Err(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// mostReplicas is how many replicas are read of; more are refused when they say that they are there.
const mostReplicas = 1000

// stored reads what a deployment has left there.
func (s *examiner) stored(ctx context.Context) (shards int, replicas []json.RawMessage, err error) {
	run := s.servers.client()
	shards, err = run.HGet(ctx, schema.MetaKey, "shards").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, nil, err
	}
	ids, err := run.ZRange(ctx, schema.FleetKey, 0, mostReplicas-1).Result()
	if err != nil {
		return shards, nil, err
	}
	for _, id := range ids {
		switch text, err := run.Get(ctx, schema.ReplicaKey(id)).Bytes(); {
		case err == nil:
			replicas = append(replicas, text)
		case !errors.Is(err, redis.Nil): // one that has ended since
			return shards, replicas, err
		}
	}
	return shards, replicas, nil
}
