package redistest

import (
	"testing"
)

// What is too long now and then is the machine's doing, and what always is the code's.
func TestMeasuredForgivesWhatDoesNotComeAgain(t *testing.T) {
	for name, test := range map[string]struct {
		plays []TooLong
		want  int // how many are played
	}{
		"nothing":         {[]TooLong{nil}, 1},
		"one":             {[]TooLong{{"a": "1 s"}, nil}, 2},
		"now one, now b":  {[]TooLong{{"a": "1 s"}, {"b": "2 s"}}, 2},
		"at last nothing": {[]TooLong{{"a": "1 s", "b": "1 s"}, {"b": "2 s"}, {"a": "1 s"}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			played := 0
			Measured(t, func(*testing.T) TooLong { played++; return test.plays[played-1] })
			if played != test.want {
				t.Errorf("played %d times, want %d", played, test.want)
			}
		})
	}
}
