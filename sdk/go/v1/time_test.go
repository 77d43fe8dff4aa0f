package v1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTimeOnTheWire(t *testing.T) {
	for in, want := range map[string]string{
		`"2025-01-15T10:05:00Z"`:                `"2025-01-15T10:05:00.000Z"`,
		`"2025-01-15T12:05:00.1234567+02:00"`:   `"2025-01-15T10:05:00.123Z"`,
		`"0001-01-02T00:00:00Z"`:                `"0001-01-02T00:00:00.000Z"`,
		`null`:                                  `null`,
		`"2025-01-15T10:05:00.999999999-00:30"`: `"2025-01-15T10:35:00.999Z"`,
	} {
		var at Time
		if err := json.Unmarshal([]byte(in), &at); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, err := json.Marshal(at); err != nil || string(got) != want {
			t.Errorf("%s became %s, want %s (%v)", in, got, want, err)
		}
	}
}

func TestTimeRefusesWhatRFC3339Refuses(t *testing.T) {
	for _, in := range []string{
		`"2025-01-15T1:05:00Z"`, `"2025-01-15T10:05:00,5Z"`, `"2025-01-15T10:05:00+24:00"`, `"2025-01-15T10:05:00+01:60"`,
		`"2025-01-15 10:05:00Z"`, `"2025-01-15"`, `"2025-02-29T00:00:00Z"`, `""`, `5`, `{}`, `true`,
		`"9999-12-31T23:59:59-23:59"`, `"0000-01-01T00:00:00+23:59"`, // outside 0 to 9999 in UTC
	} {
		var v struct {
			At Time `json:"at"`
		}
		err := json.Unmarshal([]byte(`{"at":`+in+`}`), &v)
		kind, ok := err.(*json.UnmarshalTypeError)
		if !ok || kind.Field != "at" {
			t.Errorf("%s: got %v, want an error that names the field", in, err)
		}
	}
}

func TestAtCutsToMillisecondsAndKeepsZero(t *testing.T) {
	if !At(time.Time{}).IsZero() {
		t.Error("the zero time did not stay zero")
	}
	got := At(time.Date(2025, 1, 15, 12, 0, 0, 1_999_999, time.FixedZone("x", 3600)))
	if want := time.Date(2025, 1, 15, 11, 0, 0, 1_000_000, time.UTC); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRetryableByCategory(t *testing.T) {
	want := map[ErrorCategory]bool{
		CategoryUserCode: true, CategoryDataQuality: false, CategoryInfrastructure: true,
		CategoryConfiguration: false, CategoryTimeout: true, CategoryCancelled: false,
	}
	if len(ErrorCategories) != len(want) {
		t.Fatalf("%d categories, want %d", len(ErrorCategories), len(want))
	}
	for _, c := range ErrorCategories {
		if c.Retryable() != want[c] || !c.Valid() {
			t.Errorf("%s: retryable %v, want %v", c, c.Retryable(), want[c])
		}
	}
	if ErrorCategory("user_code").Valid() {
		t.Error("categories are case-sensitive")
	}
}
