package check

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const (
	composeFile = "../../docker-compose.yml"
	aKey        = "LUBDUB_SIGNING_KEYS=k1=YSBrZXkgb2YgYSB0ZXN0LCAzMiBieXRlcyBvciBtb3Jl"
)

// project reads docker-compose.yml as `docker compose --profile … config` does.
func project(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithProfiles(profiles), cli.WithEnv([]string{aKey}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// With its file of variables the profile "cluster" is on, and Lubdub waits for the Cluster and connects to it.
func TestComposeOnACluster(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithEnv([]string{aKey}),
		cli.WithEnvFiles("../compose/cluster.env"), cli.WithDotEnv, cli.WithDefaultProfiles())
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"api", "sweeper"} {
		s := p.Services[name]
		url := s.Environment["LUBDUB_REDIS"]
		if url == nil || !strings.HasPrefix(*url, "redis+cluster://redis-1:6379,") {
			t.Errorf("%s uses %v", name, url)
		}
		if s.DependsOn["redis-cluster"].Condition != types.ServiceConditionCompletedSuccessfully {
			t.Errorf("%s waits for %v", name, s.DependsOn)
		}
	}
	if _, ok := p.Services["redis-6"]; !ok {
		t.Errorf("there are only %q", p.ServiceNames())
	}
}

var always = []string{"api", "balancer", "redis", "sweeper"}

// Compose takes the file with each of its profiles: services wait for what is there, and the files that they mount exist.
func TestCompose(t *testing.T) {
	for profile, more := range map[string][]string{
		"":              nil,
		"observability": {"grafana", "prometheus"},
		"load":          {"load"},
		"cluster":       {"redis-1", "redis-2", "redis-3", "redis-4", "redis-5", "redis-6", "redis-cluster"},
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
					there, ok := p.Services[other]
					if !ok && on.Required || ok && (on.Condition == types.ServiceConditionHealthy) != (there.HealthCheck != nil) {
						t.Errorf("%s waits for %s to be %s, which is not there or never is", name, other, on.Condition)
					}
				}
				for _, port := range s.Ports {
					if port.HostIP != "127.0.0.1" {
						t.Errorf("%s listens on all addresses at %s", name, port.Published)
					}
				}
				if s.Build != nil && filepath.Base(s.Build.Dockerfile) != "Dockerfile" {
					t.Errorf("%s is built from %s", name, s.Build.Dockerfile)
				}
			}
		})
	}
}
