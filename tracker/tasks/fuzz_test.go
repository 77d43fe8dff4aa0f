package tasks

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/storedtest"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Reading any stored bytes returns a value or an error.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		readHistory(text, &model.Task{}, time.Hour)
	})
}
