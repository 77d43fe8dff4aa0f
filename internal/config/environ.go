package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/internal/suggest"
)

// EnvPrefix begins the name of every variable that Lubdub reads.
const EnvPrefix = "LUBDUB_"

// envTests begins the names that the project's own tests read. They pass, so that a shell that is set up for the
// tests can run the program too.
const envTests = EnvPrefix + "TEST_"

// EnvConfig names the variable that may hold the path of the YAML file.
const EnvConfig = EnvPrefix + "CONFIG"

// others are variables of the client and of the operator's commands.
var others = []string{"LUBDUB_URL", "LUBDUB_TOKEN", "LUBDUB_TOKEN_FILE", "LUBDUB_CONTEXT"}

// Kubernetes puts variables of its own into every pod beside a Service called lubdub or lubdub-something. They
// look like ours, and nobody asked for them: LUBDUB_PORT=tcp://10.0.0.7:8080, LUBDUB_API_SERVICE_HOST=10.0.0.7.
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
	// LUBDUB_PORT=8080 is somebody's guess at a setting of ours, and is told so.
	return !strings.HasSuffix(name, "_PORT") || strings.Contains(name, "_TCP_") ||
		strings.Contains(name, "_UDP_") || strings.Contains(name, "_SCTP_") || servicePortBare.MatchString(value)
}

// applyEnviron lays the LUBDUB_* variables over what is loaded so far. An empty one counts as not set, since that is what a
// compose file makes of a missing variable.
func (l *Loaded) applyEnviron(environ []string) (ps problems) {
	known := []string{EnvConfig}
	byEnv := map[string]Field{}
	for _, f := range Fields() {
		known = append(known, f.Env)
		byEnv[f.Env] = f
	}
	gone := map[string]string{}
	for name := range removed {
		gone[envOf(name)] = name
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, EnvPrefix) || name == EnvConfig || slices.Contains(others, name) ||
			strings.HasPrefix(name, envTests) || fromKubernetes(name, value) {
			continue
		}
		f, ok := byEnv[name]
		if setting := gone[name]; setting != "" {
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

// lookupEnv finds one variable in a list as os.Environ gives it; the last one wins, as it does there.
func lookupEnv(environ []string, name string) (value string) {
	for _, pair := range environ {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			value = v
		}
	}
	return value
}
