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
	deploymentField  = "id" // in the meta hash
	deploymentPrefix = "dep_"
)

// Deployment returns the identifier of the deployment that uses the store. It does not change while the store exists; a store that was
// lost gets it again from the running replicas.
func (s *format) Deployment() string {
	if name := s.deployment.Load(); name != nil {
		return *name
	}
	return ""
}

// nameDeployment stores an identifier if the store has none.
func (s *format) nameDeployment(ctx context.Context) error {
	name := s.Deployment()
	if name == "" {
		name = model.NewID(deploymentPrefix)
	}
	return s.servers.client().HSetNX(ctx, schema.MetaKey, deploymentField, name).Err()
}

// learnDeployment reads the identifier of the deployment, and stores one if it is missing.
func (s *format) learnDeployment(ctx context.Context) error {
	name, err := s.servers.client().HGet(ctx, schema.MetaKey, deploymentField).Result()
	if errors.Is(err, redis.Nil) { // a release that knew no identifier has founded the store again
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
