package queues

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/storedtest"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Whatever stands in the store, reading it ends in a value or a refusal.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		(&listener{queues: &Service{store: &store.Store{Keyspace: &store.Keyspace{Keys: make([]*schema.ShardKeys, 2)}}}}).hear(text)
	})
}
