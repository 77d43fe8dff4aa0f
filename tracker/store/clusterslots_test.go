package store

import (
	"context"
	"errors"
	"testing"
)

// A node that does not respond, or that fails, does not delay the answer of the next one.
func TestTheFirstAnswerCounts(t *testing.T) {
	left := make(chan struct{})
	query := func(ctx context.Context, addr string) (string, error) {
		switch addr {
		case "frozen":
			<-ctx.Done()
			close(left)
			return "", ctx.Err()
		case "refuses":
			return "", errors.New("refused")
		}
		return "from " + addr, nil
	}
	got, err := firstAnswer(t.Context(), []string{"refuses", "frozen", "well"}, query)
	if got != "from well" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	<-left // the slower request was cancelled
	if _, err := firstAnswer(t.Context(), []string{"refuses", "refuses"}, query); err == nil || err.Error() != "refused" {
		t.Errorf("when all fail: %v", err)
	}
}
