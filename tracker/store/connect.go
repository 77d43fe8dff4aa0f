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

// embeddedScheme marks URLs of a miniredis in this process: it evicts nothing, and cannot be asked whether it does.
const embeddedScheme = "miniredis"

// servers are the connections to Redis, whichever way it is deployed, and what is asked of whole servers. Nothing changes once the start is
// over.
type servers struct {
	opts     Options
	embedded bool // a miniredis in this process

	single    *redis.Client          // one server, or Sentinel's choice of one; nil on Cluster
	cluster   *redis.ClusterClient   // nil otherwise
	sentinels *redis.FailoverOptions // nil without Sentinel
}

// OnCluster reports whether the shards may lie on several nodes, and a script may touch one shard only.
func (s *servers) OnCluster() bool { return s.cluster != nil }

// Database is the number of the deployment's own.
func (s *servers) Database() int {
	if s.single == nil {
		return 0
	}
	return s.single.Options().DB
}

// AddHook has every command to the one server pass a hook, for tests; it is for stores that are no Cluster.
func (s *servers) AddHook(h redis.Hook) { s.single.AddHook(h) }

func (s *servers) close() error {
	if s.cluster != nil {
		return s.cluster.Close()
	}
	return s.single.Close()
}

// connect makes the client for Options.URL. It does not ask Redis yet.
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
	// The library would ask nodes for their list of commands before the first one that belongs to no shard, and wait for a frozen one
	// for up to 5 s. Lubdub gives no command whose routing depends on that list.
	o.DisableRoutingPolicies = true
	one := redis.Options{Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, MaintNotificationsConfig: noMaintenance()}
	s.tune(&one)
	useSlotsHook(o, one)
	s.cluster = redis.NewClusterClient(o)
}

// client returns the client for the few commands that are not scripts and belong to no one shard.
func (s *servers) client() redis.Cmdable {
	if s.cluster != nil {
		return s.cluster
	}
	return s.single
}

// becomeCluster turns the client of a plain URL into that of a Cluster, when its server turns out to be a node of one.
func (s *servers) becomeCluster() {
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

// tune sets what must hold whatever the URL says: no client retries (they run a script twice and hide an outage), short
// timeouts, deadlines of contexts that are kept, and the plain protocol that every store speaks. The library has an Options
// type for each kind of client; what they share bears the same names in all, but has no type.
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

// noMaintenance switches off maintenance notifications of servers and Clusters; behind a Sentinel the library asks for none by
// itself.
func noMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// tls returns how TLS is spoken where a URL asks for it. The server's name is not that of the URL's first host, as the
// library has it, but of each host that is dialled: nodes of a Cluster and what a Sentinel names have their own.
func (s *servers) tls(asked *tls.Config) *tls.Config {
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

// secretParameter finds the values of secret URL parameters: with Sentinel Redis's own password is one.
var secretParameter = regexp.MustCompile(`(?i)([?&][a-z_]*password=)[^&#]*`)

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
