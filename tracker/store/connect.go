package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// embeddedScheme marks URLs of a miniredis in this process, which evicts nothing and has no INFO about it.
const embeddedScheme = "miniredis"

// servers holds the connections to Redis, on one server, behind Sentinel or on Cluster, and asks about whole servers. It does not change
// after the start.
type servers struct {
	opts     Options
	embedded bool // a miniredis in this process

	single    *redis.Client          // one server, or the primary that Sentinel names; nil on Cluster
	cluster   *redis.ClusterClient   // nil otherwise
	sentinels *redis.FailoverOptions // nil without Sentinel
}

// OnCluster reports whether the store is a Cluster, where shards may be on several nodes and a script may touch one shard only.
func (s *servers) OnCluster() bool { return s.cluster != nil }

// Database returns the number of the Redis database that the deployment uses.
func (s *servers) Database() int {
	if s.single == nil {
		return 0
	}
	return s.single.Options().DB
}

// AddHook installs a hook for every command to the one server, for tests. The store must not be a Cluster.
func (s *servers) AddHook(h redis.Hook) { s.single.AddHook(h) }

func (s *servers) close() error {
	if s.cluster != nil {
		return s.cluster.Close()
	}
	return s.single.Close()
}

// connect creates the client for Options.URL. It sends nothing to Redis yet.
func (s *servers) connect() error {
	scheme, rest, ok := strings.Cut(s.opts.URL, "://")
	if !ok {
		return fmt.Errorf("redis URL %q has no scheme; write redis://host:port/db, redis+cluster://host:port,host:port or "+
			"redis+sentinel://host:port,host:port/master", redactURL(s.opts.URL))
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
		err = fmt.Errorf("redis URL scheme %q is not known; after + use cluster or sentinel", scheme)
	}
	if err != nil {
		return fmt.Errorf("redis URL %q: %w", redactURL(s.opts.URL), err)
	}
	return nil
}

// splitURL splits user:pass@host,host/path?query; net/url refuses several hosts.
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

func (s *servers) connectSingle() error {
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
	s.tune(o)
	o.MaintNotificationsConfig = noMaintenance()
	o.TLSConfig = s.tls(o.TLSConfig)
	s.single = redis.NewClient(o)
	return nil
}

func (s *servers) connectSentinel(base, user string, hosts []string, path string) error {
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

func (s *servers) failover(o *redis.FailoverOptions) *redis.Client {
	s.tune(o)
	o.TLSConfig = s.tls(o.TLSConfig)
	s.sentinels = o
	return redis.NewFailoverClient(o)
}

func (s *servers) connectCluster(base, user string, hosts []string, path string) error {
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

func (s *servers) useCluster(o *redis.ClusterOptions) {
	s.tune(o)
	o.MaintNotificationsConfig = noMaintenance()
	o.TLSConfig = s.tls(o.TLSConfig)
	// Without this the library asks nodes for their list of commands before the first command that belongs to no shard, and waits up to 5
	// s for a frozen one. No command of Lubdub needs that list.
	o.DisableRoutingPolicies = true
	one := redis.Options{Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, MaintNotificationsConfig: noMaintenance()}
	s.tune(&one)
	useSlotsHook(o, one)
	s.cluster = redis.NewClusterClient(o)
}

// client returns the client for the few commands that are not scripts and belong to no shard.
func (s *servers) client() redis.Cmdable {
	if s.cluster != nil {
		return s.cluster
	}
	return s.single
}

// becomeCluster replaces the client of a plain URL with a Cluster client, when its server turns out to be a node of a Cluster.
func (s *servers) becomeCluster() {
	o := s.single.Options()
	_ = s.single.Close()
	s.single = nil
	s.useCluster(&redis.ClusterOptions{
		Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
	})
}

// poolSize limits the connections to one Redis server. It is enough for one flush of each lane, seven at once, the sweeper's rounds and
// the probe of a silent node, with some to spare, so that none waits for another.
const poolSize = 16

// tune sets options that apply whatever the URL sets: no client retries (they run a script twice and hide an outage), short timeouts,
// context deadlines, and the protocol that every store supports. The library has an Options type for each kind of client, with the same
// field names but no common type.
func (s *servers) tune(options any) {
	o := reflect.ValueOf(options).Elem()
	for field, value := range map[string]any{
		"MaxRetries": -1, "DialerRetries": 1, "PoolSize": poolSize, "Protocol": 2,
		"DialTimeout": s.opts.Timeout, "ReadTimeout": s.opts.Timeout, "WriteTimeout": s.opts.Timeout, "PoolTimeout": s.opts.Timeout,
		"ContextTimeoutEnabled": true, "DisableIdentity": true,
	} {
		o.FieldByName(field).Set(reflect.ValueOf(value))
	}
}

// noMaintenance switches off maintenance notifications of servers and Clusters. Behind Sentinel the library requests none.
func noMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// tls returns the TLS configuration for a URL that asks for TLS, else nil. It leaves the server name to be that of each host that is
// dialled, where the library would use the URL's first host: nodes of a Cluster and servers that Sentinel names have certificates for
// their own names.
func (s *servers) tls(requested *tls.Config) *tls.Config {
	switch {
	case requested == nil:
		return nil
	case s.opts.TLS != nil:
		c := s.opts.TLS.Clone()
		c.InsecureSkipVerify = requested.InsecureSkipVerify
		return c
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: requested.InsecureSkipVerify}
}

// secretParameter matches the values of password parameters in a URL; with Sentinel, Redis's password is one.
var secretParameter = regexp.MustCompile(`(?i)([?&][a-z_]*password=)[^&#]*`)

// redactURL replaces the passwords in a URL, for logs and errors.
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
