package check

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// project reads docker-compose.yml as `docker compose --profile … config` does.
func project(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../docker-compose.yml"}, cli.WithProfiles(profiles),
		cli.WithEnv([]string{"LUBDUB_SIGNING_KEYS=k1=" + "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var always = []string{"api", "balancer", "redis", "sweeper"}

// Compose takes the file with each of its profiles: services wait for what is there, and the files that they mount exist.
func TestCompose(t *testing.T) {
	for profile, more := range map[string][]string{
		"":              nil,
		"observability": {"grafana", "prometheus"},
	} {
		t.Run(profile, func(t *testing.T) {
			p := project(t, profile)
			want := slices.Sorted(slices.Values(slices.Concat(always, more)))
			if got := slices.Sorted(maps.Keys(p.Services)); !slices.Equal(got, want) {
				t.Errorf("it starts %q, and should %q", got, want)
			}
			for name, s := range p.Services {
				for _, v := range s.Volumes {
					if v.Type != types.VolumeTypeBind {
						continue
					}
					if _, err := os.Stat(v.Source); err != nil {
						t.Errorf("%s mounts what is not there: %v", name, err)
					}
				}
				for other, on := range s.DependsOn {
					if there, ok := p.Services[other]; on.Condition == types.ServiceConditionHealthy && (!ok || there.HealthCheck == nil) {
						t.Errorf("%s waits for %s, which is not there or never says that it is well", name, other)
					}
				}
				for _, port := range s.Ports {
					if port.HostIP != "127.0.0.1" {
						t.Errorf("%s listens for everybody at %s", name, port.Published)
					}
				}
				if s.Build != nil && filepath.Base(s.Build.Dockerfile) != "Dockerfile" {
					t.Errorf("%s is built from %s", name, s.Build.Dockerfile)
				}
			}
		})
	}
}
