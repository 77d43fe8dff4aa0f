package queues

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/storedtest"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Reading any stored bytes returns a value or an error.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		(&Service{store: &store.Store{Keyspace: &store.Keyspace{Keys: make([]*schema.ShardKeys, 2)}}}).receive(text)
	})
}
