package tasks

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/storedtest"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Whatever stands in the store, reading it ends in a value or a refusal.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		readHistory(text, &model.Task{}, time.Hour)
	})
}
