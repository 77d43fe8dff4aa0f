package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Field describes one setting, as read from the tags of Config.
type Field struct {
	Name    string // of the flag, after --, and of the YAML key
	Env     string // LUBDUB_…
	Group   string
	Help    string
	Who     string // sets it, and why: one sentence
	Default string
	Unit    string // "duration", "count" or empty
	Min     string // empty: no bound
	Max     string
	Enum    []string
	Zero    string
	Secret  string // "", "url" or "all"
	EnvOnly bool   // neither flag nor YAML key

	index int
}

// ofTracker has the defaults and bounds that package tracker states. They are not repeated in the tags of Config.
var ofTracker = map[string]struct{ Default, Min, Max string }{
	"redis-timeout": {Default: formatDuration(tracker.DefaultRedisTimeout)},
	"shards":        {Max: strconv.Itoa(store.MaxShards)},
	"finished-retention": {
		Default: formatDuration(model.DefaultFinishedRetention), Min: formatDuration(model.MinFinishedRetention),
	},
	"durable-replicas":          {Default: strconv.Itoa(tracker.DefaultDurableReplicas), Max: strconv.Itoa(store.MaxDurableReplicas)},
	"worker-heartbeat-interval": {Default: formatDuration(model.DefaultWorkerInterval)},
	"worker-timeout-multiplier": {Default: strconv.Itoa(model.DefaultWorkerMultiplier)},
}

var fields = sync.OnceValue(func() []Field {
	t := reflect.TypeFor[Config]()
	fs := make([]Field, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		f := Field{
			Name: tag.Get("name"), Group: tag.Get("group"), Help: tag.Get("help"), Who: tag.Get("who"), Zero: tag.Get("zero"),
			Secret: tag.Get("secret"), EnvOnly: tag.Get("source") == "env", index: i,
		}
		stated := ofTracker[f.Name]
		f.Default = cmp.Or(tag.Get("default"), stated.Default)
		f.Min, f.Max = cmp.Or(tag.Get("min"), stated.Min), cmp.Or(tag.Get("max"), stated.Max)
		f.Env = envOf(f.Name)
		if e := tag.Get("enum"); e != "" {
			f.Enum = strings.Split(e, ",")
		}
		switch t.Field(i).Type {
		case reflect.TypeFor[time.Duration]():
			f.Unit = "duration"
		case reflect.TypeFor[int]():
			f.Unit = "count"
		}
		fs = append(fs, f)
	}
	return fs
})

// Fields lists every setting in the order of the struct. The slice is shared: do not change it.
func Fields() []Field { return fields() }

// Lookup finds a setting by its name.
func Lookup(name string) (Field, bool) {
	for _, f := range Fields() {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// set parses text into the field of c. The error does not name the field: the caller knows where the text stood.
func (f Field) set(c *Config, text string) error {
	return Parse(text, reflect.ValueOf(c).Elem().Field(f.index))
}

// copy takes over the field's value from another Config.
func (f Field) copy(to, from *Config) {
	reflect.ValueOf(to).Elem().Field(f.index).Set(reflect.ValueOf(from).Elem().Field(f.index))
}

// Text is the field's value in c, as it would be written in the file.
func (f Field) Text(c *Config) string {
	switch v := reflect.ValueOf(c).Elem().Field(f.index).Interface().(type) {
	case time.Duration:
		return formatDuration(v)
	default:
		return fmt.Sprint(v)
	}
}

// Parse is the one parser for values of every source: flag, variable and file.
func Parse(text string, target reflect.Value) error {
	text = strings.TrimSpace(text)
	if u, ok := target.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch target.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			if _, bare := strconv.ParseFloat(text, 64); bare == nil {
				return fmt.Errorf("%q has no unit; write for example %ss", text, text)
			}
			return fmt.Errorf("%q is not a duration; write for example 500ms, 10s or 1h30m", text)
		}
		target.SetInt(int64(d))
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		target.SetInt(int64(n))
	case string:
		target.SetString(text)
	default:
		return fmt.Errorf("settings of type %s cannot be parsed", target.Type())
	}
	return nil
}

// formatDuration writes 24h where time.Duration writes 24h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
