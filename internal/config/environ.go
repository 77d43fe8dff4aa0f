package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/internal/suggest"
)

// EnvPrefix begins the name of every variable that Lubdub reads.
const EnvPrefix = "LUBDUB_"

// envTests is the prefix of the names that the project's own tests read. They are accepted, so that the program also runs in a shell
// that is set up for the tests.
const envTests = EnvPrefix + "TEST_"

// EnvConfig is the variable with the path of the YAML file.
const EnvConfig = EnvPrefix + "CONFIG"

// others are variables of the client and of the operator's commands.
var others = []string{"LUBDUB_URL", "LUBDUB_TOKEN", "LUBDUB_TOKEN_FILE", "LUBDUB_CONTEXT"}

// Kubernetes adds variables to every pod for a Service called lubdub or lubdub-something. They look like ours, but were not set on
// purpose: LUBDUB_PORT=tcp://10.0.0.7:8080, LUBDUB_API_SERVICE_HOST=10.0.0.7.
var (
	serviceLink     = regexp.MustCompile(`^LUBDUB_([A-Z0-9_]+_)?SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$`)
	servicePort     = regexp.MustCompile(`^LUBDUB_([A-Z0-9_]+_)?PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)
	servicePortBare = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

func fromKubernetes(name, value string) bool {
	if serviceLink.MatchString(name) {
		return true
	}
	if !servicePort.MatchString(name) {
		return false
	}
	// LUBDUB_PORT=8080 is a user's guess at one of our settings, and is reported as unknown.
	return !strings.HasSuffix(name, "_PORT") || strings.Contains(name, "_TCP_") ||
		strings.Contains(name, "_UDP_") || strings.Contains(name, "_SCTP_") || servicePortBare.MatchString(value)
}

// applyEnviron applies the LUBDUB_* variables to the configuration so far. An empty one counts as unset, since a compose file turns a
// missing variable into an empty one.
func (l *Loaded) applyEnviron(environ []string) (ps problems) {
	known := []string{EnvConfig}
	byEnv := map[string]Field{}
	for _, f := range Fields() {
		known = append(known, f.Env)
		byEnv[f.Env] = f
	}
	removedByEnv := map[string]string{}
	for name := range removed {
		removedByEnv[envOf(name)] = name
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, EnvPrefix) || name == EnvConfig || slices.Contains(others, name) ||
			strings.HasPrefix(name, envTests) || fromKubernetes(name, value) {
			continue
		}
		f, ok := byEnv[name]
		if setting := removedByEnv[name]; setting != "" {
			if value != "" {
				l.sources[setting] = Source{Layer: Environment, Where: name}
			}
			continue
		}
		if !ok {
			ps.addf("environment: there is no setting %s%s", name, suggest.DidYouMean(name, known))
			continue
		}
		if value == "" {
			continue
		}
		l.apply(f, value, Source{Layer: Environment, Where: f.Env}, &ps)
	}
	return ps
}

// lookupEnv finds a variable in a list as from os.Environ; the last one wins, as in the process.
func lookupEnv(environ []string, name string) (value string) {
	for _, pair := range environ {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			value = v
		}
	}
	return value
}
