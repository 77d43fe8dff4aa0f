package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// embeddedScheme is of URLs of a miniredis in this process: it evicts nothing, and cannot be asked whether it does.
const embeddedScheme = "miniredis"

// connect makes the client for Options.RedisURL. It does not ask Redis yet.
func (s *Store) connect() error {
	scheme, rest, ok := strings.Cut(s.opts.URL, "://")
	if !ok {
		return fmt.Errorf("redis URL %q has no scheme; write redis://host:port/db, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master", redactURL(s.opts.URL))
	}
	if scheme == embeddedScheme {
		scheme, s.embedded = "redis", true
		s.opts.URL = scheme + "://" + rest
	}
	base, kind, _ := strings.Cut(scheme, "+")
	if base != "redis" && base != "rediss" && base != "unix" {
		return fmt.Errorf("redis URL scheme %q is not known; use redis, rediss (TLS), unix, or one of these with +cluster or +sentinel", scheme)
	}
	user, hosts, path := splitURL(rest)
	var err error
	switch {
	case kind == "sentinel":
		err = s.connectSentinel(base, user, hosts, path)
	case kind == "cluster" || kind == "" && len(hosts) > 1:
		err = s.connectCluster(base, user, hosts, path)
	case kind == "":
		err = s.connectSingle()
	default:
		err = fmt.Errorf("redis URL scheme %q is not known; after + stands cluster or sentinel", scheme)
	}
	if err != nil {
		return fmt.Errorf("redis URL %q: %w", redactURL(s.opts.URL), err)
	}
	return nil
}

// splitURL takes user:pass@host,host/path?query apart; net/url refuses several hosts.
func splitURL(rest string) (user string, hosts []string, path string) {
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i+1], authority[i+1:]
	}
	return user, strings.Split(authority, ","), path
}

func (s *Store) connectSingle() error {
	if strings.Contains(s.opts.URL, "master_name=") {
		o, err := redis.ParseFailoverURL(s.opts.URL)
		if err != nil {
			return err
		}
		s.single = s.failover(o)
		return nil
	}
	o, err := redis.ParseURL(s.opts.URL)
	if err != nil {
		return err
	}
	s.single = redis.NewClient(s.tune(o))
	return nil
}

func (s *Store) connectSentinel(base, user string, hosts []string, path string) error {
	path, query, _ := strings.Cut(path, "?")
	master, db, _ := strings.Cut(strings.Trim(path, "/"), "/")
	if master == "" {
		return errors.New("the name of the master is missing; write redis+sentinel://host:port,host:port/<master>/<db>")
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	q.Set("master_name", master)
	for _, h := range hosts[1:] {
		q.Add("addr", h)
	}
	o, err := redis.ParseFailoverURL(base + "://" + user + hosts[0] + "/" + db + "?" + q.Encode())
	if err != nil {
		return err
	}
	s.single = s.failover(o)
	return nil
}

func (s *Store) failover(o *redis.FailoverOptions) *redis.Client {
	o.MaxRetries = -1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.opts.Timeout, s.opts.Timeout, s.opts.Timeout
	o.PoolTimeout, o.DialerRetries, o.PoolSize = s.opts.Timeout, 1, poolSize
	o.ContextTimeoutEnabled = true
	o.Protocol, o.DisableIdentity = 2, true
	o.TLSConfig = s.tls(o.TLSConfig)
	return redis.NewFailoverClient(o)
}

func (s *Store) connectCluster(base, user string, hosts []string, path string) error {
	_, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for _, h := range hosts[1:] {
		q.Add("addr", h)
	}
	o, err := redis.ParseClusterURL(base + "://" + user + hosts[0] + "?" + q.Encode())
	if err != nil {
		return err
	}
	s.useCluster(o)
	return nil
}

func (s *Store) useCluster(o *redis.ClusterOptions) {
	o.MaxRetries = -1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.opts.Timeout, s.opts.Timeout, s.opts.Timeout
	o.PoolTimeout, o.DialerRetries, o.PoolSize = s.opts.Timeout, 1, poolSize
	o.ContextTimeoutEnabled = true
	o.Protocol, o.DisableIdentity = 2, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.TLSConfig = s.tls(o.TLSConfig)
	s.cluster = redis.NewClusterClient(o)
}

// becomeCluster is for a plain URL whose server turns out to be a node of a Cluster.
func (s *Store) becomeCluster() {
	o := s.single.Options()
	_ = s.single.Close()
	s.single = nil
	s.useCluster(&redis.ClusterOptions{
		Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
	})
}

// poolSize bounds the connections to one Redis server: a flush each of the lanes, seven at once, the sweeper's rounds,
// the probe of a silent node, and room, so that none waits for another's.
const poolSize = 16

// tune sets what must hold whatever the URL says: no client retries (they run a script twice and hide an
// outage), short timeouts, deadlines of contexts that are kept, and the plain protocol that every store speaks.
func (s *Store) tune(o *redis.Options) *redis.Options {
	o.MaxRetries = -1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.opts.Timeout, s.opts.Timeout, s.opts.Timeout
	o.PoolTimeout, o.DialerRetries, o.PoolSize = s.opts.Timeout, 1, poolSize
	o.ContextTimeoutEnabled = true
	o.Protocol, o.DisableIdentity = 2, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.TLSConfig = s.tls(o.TLSConfig)
	return o
}

// secretParameter finds the values of URL parameters that are secret: with Sentinel Redis's own password is one.
var secretParameter = regexp.MustCompile(`(?i)([?&][a-z_]*password=)[^&#]*`)

// tls gives how TLS is spoken where a URL asks for it. The server's name is not that of the URL's first host, as the
// library has it, but of each host that is dialled: nodes of a Cluster and what a Sentinel names have their own.
func (s *Store) tls(asked *tls.Config) *tls.Config {
	switch {
	case asked == nil:
		return nil
	case s.opts.TLS != nil:
		c := s.opts.TLS.Clone()
		c.InsecureSkipVerify = asked.InsecureSkipVerify
		return c
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: asked.InsecureSkipVerify}
}

// redactURL hides the passwords of a URL, for logs and errors.
func redactURL(raw string) string {
	raw = secretParameter.ReplaceAllString(raw, "${1}***")
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return raw
	}
	user, _, hasPassword := strings.Cut(rest[:at], ":")
	if !hasPassword {
		return raw
	}
	return scheme + "://" + user + ":***@" + rest[at+1:]
}

// check looks at the server before anything relies on it.
func (s *Store) check(ctx context.Context) error {
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	if info["redis_mode"] == "cluster" && s.single != nil {
		s.becomeCluster()
	}
	if err := s.checkDurability(ctx, info); err != nil {
		return err
	}
	if s.embedded {
		return nil // it evicts nothing and keeps nothing, which its user was told
	}
	if e := s.anyEvicts(ctx); e != nil {
		return e
	}
	version := info["redis_version"]
	if major, _, _ := strings.Cut(version, "."); len(major) == 1 && major < "7" {
		return fmt.Errorf("redis at %s is version %s; Lubdub needs Redis 7.0 or newer, or Valkey", redactURL(s.opts.URL), version)
	}
	if info["aof_enabled"] == "0" {
		s.opts.Logger.Warn("redis does not persist: appendonly is off, so a restart loses finished tasks and queues (running ones are adopted again by their beats); set appendonly yes")
	}
	return nil
}

// info reads what check needs. Some stores know no INFO sections; they answer with an error that is no outage.
func (s *Store) info(ctx context.Context) (map[string]string, error) {
	var run redis.Cmdable = s.cluster
	if s.single != nil {
		run = s.single
	}
	if err := run.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("cannot reach Redis at %s: %w; start one there, give another with --redis, or try Lubdub without one: --redis embedded", redactURL(s.opts.URL), err)
	}
	info := map[string]string{}
	for _, section := range []string{"server", "persistence"} {
		text, err := run.Info(ctx, section).Result()
		if IsNetwork(err) {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[k] = v
			}
		}
	}
	return info, nil
}

// settleShards fixes the number of shards on a deployment's first start and holds every later start to it. It tells
// whether this is the first.
func (s *Store) settleShards(ctx context.Context) (shards int, founded bool, err error) {
	var run redis.Cmdable = s.cluster
	if s.single != nil {
		run = s.single
	}
	want := s.opts.Shards
	if want == 0 {
		want = 16
		if s.cluster != nil {
			want = 64
		}
	}
	if founded, err = run.HSetNX(ctx, schema.MetaKey, "shards", want).Result(); err != nil {
		return 0, false, fmt.Errorf("cannot write to Redis at %s: %w", redactURL(s.opts.URL), err)
	}
	stored, err := run.HGet(ctx, schema.MetaKey, "shards").Int()
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the stored shard count: %w", err)
	}
	if s.opts.Shards != 0 && stored != s.opts.Shards {
		return 0, false, fmt.Errorf("this deployment was first started with %d shards, which is fixed for its life, but --shards is %d; start with --shards %d (or 0, which takes the stored count), or use another Redis", stored, s.opts.Shards, stored)
	}
	if stored < 1 || stored > MaxShards {
		return 0, false, fmt.Errorf("the stored shard count %d is not in 1–%d; another program may have written %s", stored, MaxShards, schema.MetaKey)
	}
	return stored, founded, nil
}

// MaxShards bounds Options.Shards: every shard costs a look every 100 ms.
const MaxShards = 4096
