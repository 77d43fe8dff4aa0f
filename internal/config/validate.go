package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/suggest"
)

// leastEventsPerShard is the smallest allowed value: sweepers trim once a second.
const leastEventsPerShard = 100

// validate checks every value against its bounds, and values that depend on each other.
func (l *Loaded) validate() (ps problems) {
	for _, f := range Fields() {
		if err := f.check(&l.Config); err != nil {
			ps.addf("%s (%s): %v", f.Name, l.Source(f.Name), err)
		}
	}
	for _, name := range []string{"listen", "admin-listen"} {
		f, _ := Lookup(name)
		if err := checkAddress(f.Text(&l.Config)); err != nil {
			ps.addf("%s (%s): %v", name, l.Source(name), err)
		}
	}
	if l.Roles.API && l.Listen == l.AdminListen && !strings.HasSuffix(l.Listen, ":0") {
		ps.addf("listen and admin-listen are both %s; give them different ports", l.Listen)
	}
	for _, name := range l.AdminNames() {
		if !hostName.MatchString(name) {
			ps.addf("admin-hosts (%s): %q is not a name; write for example metrics.internal, without scheme and port", l.Source("admin-hosts"), name)
		}
	}
	if _, err := l.WebhookRanges(); err != nil {
		ps.addf("webhook-allow-cidrs (%s): %v", l.Source("webhook-allow-cidrs"), err)
	}
	if n := l.EventsPerShard; n > 0 && n < leastEventsPerShard {
		ps.addf("events-per-shard (%s): %d is below %d; give more, or 0 for as many as suit the shards", l.Source("events-per-shard"), n,
			leastEventsPerShard)
	}
	if err := checkPublicURL(l.PublicURL); err != nil {
		ps.addf("public-url (%s): %v", l.Source("public-url"), err)
	}
	if err := checkLogsURL(l.LogsURL); err != nil {
		ps.addf("logs-url (%s): %v", l.Source("logs-url"), err)
	}
	if err := checkRedis(l.Redis); err != nil {
		ps.addf("redis (%s): %v", l.Source("redis"), err)
	}
	if both := (Roles{API: true, Sweeper: true}); l.Redis == Embedded && l.Roles != both {
		ps.addf("an embedded Redis (%s) serves only its own process, which needs the roles %s and not %s (%s)", l.Source("redis"), both, l.Roles,
			l.Source("roles"))
	}
	if l.Redis == Embedded && l.Durability != "memory" {
		ps.addf("an embedded Redis (%s) keeps nothing, so durability cannot be %s (%s); run a Redis, or set durability to memory",
			l.Source("redis"), l.Durability, l.Source("durability"))
	}
	if l.SigningKeys != "" && l.SigningKeysFile != "" {
		ps.addf("signing keys come from two places, %s and signing-keys-file (%s); take one away, so that it is plain which key signs",
			l.Source("signing-keys"), l.Source("signing-keys-file"))
	}
	l.validateTLS(&ps)
	return ps
}

// validateTLS refuses incomplete settings, which would only seem to protect something.
func (l *Loaded) validateTLS(ps *problems) {
	for _, pair := range [][2]string{{"tls-cert-file", "tls-key-file"}, {"redis-tls-cert-file", "redis-tls-key-file"}} {
		if l.text(pair[0]) == "" != (l.text(pair[1]) == "") {
			ps.addf("%s (%s) and %s (%s) go together: name both files or neither", pair[0], l.Source(pair[0]), pair[1], l.Source(pair[1]))
		}
	}
	if l.TLSCert == "" {
		for _, name := range []string{"tls-client-ca-file", "admin-tls"} {
			if v := l.text(name); v != "" && v != "off" {
				ps.addf("%s (%s) needs tls-cert-file and tls-key-file: without them the listeners speak plain HTTP", name, l.Source(name))
			}
		}
	}
	if strings.HasPrefix(l.Redis, "rediss") {
		return
	}
	for _, name := range []string{"redis-tls-ca-file", "redis-tls-cert-file", "redis-tls-server-name"} {
		if l.text(name) != "" {
			ps.addf("%s (%s) is set, but redis (%s) does not begin with rediss: the connection would be plain", name, l.Source(name),
				l.Source("redis"))
		}
	}
}

func (l *Loaded) text(name string) string {
	f, _ := Lookup(name)
	return f.Text(&l.Config)
}

// check compares one field with the bounds in its tags.
func (f Field) check(c *Config) error {
	if len(f.Enum) > 0 {
		if v := f.Text(c); !slices.Contains(f.Enum, v) {
			return fmt.Errorf("%q is not one of %s%s", v, strings.Join(f.Enum, ", "), suggest.DidYouMean(v, f.Enum))
		}
	}
	switch v := reflect.ValueOf(c).Elem().Field(f.index).Interface().(type) {
	case int:
		return bounds(v, f, strconv.Atoi, strconv.Itoa)
	case time.Duration:
		return bounds(v, f, time.ParseDuration, formatDuration)
	}
	return nil
}

func bounds[T cmp.Ordered](v T, f Field, parse func(string) (T, error), format func(T) string) error {
	if f.Min != "" {
		if low, err := parse(f.Min); err != nil || v < low {
			return fmt.Errorf("%s is below %s", format(v), f.Min)
		}
	}
	if f.Max != "" {
		if high, err := parse(f.Max); err != nil || v > high {
			return fmt.Errorf("%s is above %s", format(v), f.Max)
		}
	}
	return nil
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port, such as 127.0.0.1:8080", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port between 0 and 65535", address)
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})$`)

// AdminNames are the names of admin-hosts.
func (c *Config) AdminNames() []string {
	return strings.FieldsFunc(c.AdminHosts, func(r rune) bool { return r == ',' || r == ' ' })
}

// WebhookRanges are the ranges of webhook-allow-cidrs.
func (c *Config) WebhookRanges() (all []netip.Prefix, err error) {
	for _, text := range strings.FieldsFunc(c.WebhookCIDRs, func(r rune) bool { return r == ',' || r == ' ' }) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a range of addresses; write for example 10.1.2.0/24", text)
		}
		all = append(all, p)
	}
	return all, nil
}

func checkPublicURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("%q is not a base URL; write for example https://lubdub.example.com", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("a base URL has no user, query or fragment")
	case strings.HasSuffix(text, "/"):
		return fmt.Errorf("%q must not end in a slash; paths such as /v1/tasks are appended to it", text)
	}
	return checkBasePath(u.Path)
}

var (
	placeholder  = regexp.MustCompile(`\{[^{}]*\}`)
	placeholders = []string{"{tenantId}", "{workspaceId}", "{taskId}", "{workerId}", "{machineId}", "{from}", "{to}", "{fromMs}", "{toMs}"}
)

func checkLogsURL(template string) error {
	if template == "" {
		return nil
	}
	for _, p := range placeholder.FindAllString(template, -1) {
		if !slices.Contains(placeholders, p) {
			return fmt.Errorf("there is no placeholder %s; use %s, and write a brace of the URL as %%7B or %%7D", p,
				strings.Join(placeholders, ", "))
		}
	}
	filled := placeholder.ReplaceAllString(template, "x")
	if strings.ContainsAny(filled, "{}") {
		return fmt.Errorf("%q has a brace that is no part of a placeholder; write it as %%7B or %%7D", template)
	}
	u, err := url.Parse(filled)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return fmt.Errorf("%q is not the URL of a page; write for example https://logs.example.com/search?q={taskId}", template)
	}
	return nil
}

// BasePath returns the path below which a proxy exposes the server, such as /lubdub; empty: the server has its host to itself.
func (c *Config) BasePath() string {
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return "" // Load refuses it
	}
	return u.Path
}

var basePathForm = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

func checkBasePath(text string) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "/"), "/")
	switch {
	case text == "":
		return nil
	case !basePathForm.MatchString(text):
		return fmt.Errorf("%q is not a path under which the server can be exposed; use for example /lubdub", text)
	case slices.Contains([]string{"v1", "ui", "docs"}, first):
		return fmt.Errorf("%q begins like a path of the API; choose another one, such as /lubdub", text)
	}
	return nil
}

var redisSchemes = []string{
	"redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel",
}

// checkRedis checks only the scheme: the store checks the rest of its URLs when it is opened.
func checkRedis(text string) error {
	if text == Embedded {
		return nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || rest == "" || !slices.Contains(redisSchemes, scheme) {
		return fmt.Errorf("not a URL of Redis; write for example redis://127.0.0.1:6379/0, or %s to try Lubdub without one", Embedded)
	}
	return nil
}
