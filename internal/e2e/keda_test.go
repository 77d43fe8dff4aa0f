package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// KEDA's trigger of the example in deploy/kubernetes requests, as a viewer, a page that the server has, and finds the number where it
// looks.
func TestKEDAFindsWhatItScalesBy(t *testing.T) {
	testenv.OnlyAll(t)
	example := read(t, "../../deploy/kubernetes/examples/workers.yaml")
	trigger := regexp.MustCompile(`(?m)^ +url: http://[^/]+(/\S+)\n(?: +#.*\n)* +valueLocation: (\w+)$`).FindStringSubmatch(example)
	if trigger == nil {
		t.Fatal("there is no trigger")
	}
	s := newSDK(t)
	for range 3 {
		s.create(v1.CreateTaskRequest{Queue: "default", Type: "mail"})
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.url+trigger[1], http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token("viewer"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(body, &answer); err != nil || res.StatusCode != http.StatusOK || answer[trigger[2]] != 3.0 {
		t.Errorf("%s: %d %s (%v), and %q should be 3", trigger[1], res.StatusCode, body, err, trigger[2])
	}
}
