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

// Examination is the state of a store before Lubdub uses it. Each error states why a part could not be read or done; nil: it could.
type Examination struct {
	Nodes []NodeHealth // those that have shards or may get some
	// Denied are the commands used in scripts that the user may not run, sorted.
	Denied    []string
	DeniedErr error
	// Scripts is how many scripts were loaded.
	Scripts    int
	ScriptsErr error
	// DurabilityErr is why the configured durability is not available; nil: it is.
	DurabilityErr error
	// Shards is the shard count that the first start of a deployment has stored; 0: none has started.
	Shards    int
	StoredErr error
	// Replicas are the JSON records that running replicas have written about themselves.
	Replicas []json.RawMessage
}

// Examine connects to the store in the options as Open would, and changes nothing there. It returns an error when Redis cannot be reached
// at all.
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
	x := &examiner{servers: s, scripts: o.Scripts}
	e := &Examination{DurabilityErr: d.checkDurability(ctx, info)}
	e.Nodes = x.everyNode(ctx)
	e.Denied, e.DeniedErr = x.denied(ctx)
	e.Scripts, e.ScriptsErr = x.loadAll(ctx)
	e.Shards, e.Replicas, e.StoredErr = x.stored(ctx)
	return e, nil
}

// examiner inspects servers that nothing else uses yet.
type examiner struct {
	servers *servers
	scripts *lua.Set
}

// everyNode returns the health of all primaries, sorted by address.
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

// commandCall matches a command in a script.
var commandCall = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)

// commandsOfScripts returns the commands that scripts use, sorted.
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

// probe tries commands in a script that may not write: Redis checks a user's permissions first. It adds arguments until there are enough,
// since Redis checks their number before that, and returns the commands that were denied. One key is used for all of them.
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

// probeKey does not exist.
const probeKey = "lubdub:{0}:doctor"

// denied returns the commands used in scripts that the user may not run.
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

// loadAll loads every script into every primary, as running them would.
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

// mostReplicas is how many replicas are read. It is also the limit for their registration.
const mostReplicas = 1000

// stored reads the shard count and the replicas of a deployment.
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
		case !errors.Is(err, redis.Nil): // it has ended since
			return shards, replicas, err
		}
	}
	return shards, replicas, nil
}
