package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

const (
	deploymentField  = "id" // of the meta hash
	deploymentPrefix = "dep_"
)

// Deployment names the deployment that the store belongs to. It is the same for as long as the store stands; one that was lost
// gets it again from the replicas that run.
func (s *format) Deployment() string {
	if name := s.deployment.Load(); name != nil {
		return *name
	}
	return ""
}

// nameDeployment gives the store a name where it has none.
func (s *format) nameDeployment(ctx context.Context) error {
	name := s.Deployment()
	if name == "" {
		name = model.NewID(deploymentPrefix)
	}
	return s.servers.client().HSetNX(ctx, schema.MetaKey, deploymentField, name).Err()
}

// learnDeployment reads how the deployment is named.
func (s *format) learnDeployment(ctx context.Context) error {
	name, err := s.servers.client().HGet(ctx, schema.MetaKey, deploymentField).Result()
	if errors.Is(err, redis.Nil) { // a program before it had names has founded the store anew
		if err = s.nameDeployment(ctx); err == nil {
			name, err = s.servers.client().HGet(ctx, schema.MetaKey, deploymentField).Result()
		}
	}
	if err != nil {
		return fmt.Errorf("cannot read the name of the deployment: %w", err)
	}
	s.deployment.Store(&name)
	return nil
}
