package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// What a server cannot tell is not said to be well.
func TestWhatIsNotToldIsNotWell(t *testing.T) {
	var out bytes.Buffer
	s := &session{Printer: &output.Printer{W: &out, Format: output.Table}, token: &credential{}, server: "http://127.0.0.1:8080"}
	st := &state{Health: &v1.Health{Status: "degraded", Message: "The store does not answer"}, unread: errors.New("the store does not answer")}
	us, them := st.judged()
	st.show(s, us, them)
	if text := out.String(); !strings.Contains(text, "  them: not known now\n") || strings.Contains(text, "nothing is wrong") {
		t.Errorf("it says\n%s", text)
	}
}
