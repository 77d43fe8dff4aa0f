package check

import (
	"cmp"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/util/proto"
	prototesting "k8s.io/kube-openapi/pkg/util/proto/testing"
	"k8s.io/kube-openapi/pkg/util/proto/validation"
	"sigs.k8s.io/yaml"
)

// openAPI has Kubernetes's OpenAPI schemas, which the module kube-openapi contains: of 1.27, the oldest version that the chart supports.
var openAPI = sync.OnceValues(func() (proto.Models, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kube-openapi").Output()
	if err != nil {
		return nil, err
	}
	swagger := prototesting.Fake{Path: strings.TrimSpace(string(dir)) + "/pkg/schemaconv/testdata/swagger.json"}
	document, err := swagger.OpenAPISchema()
	if err != nil {
		return nil, err
	}
	if version := document.GetInfo().GetVersion(); version != "v1.27.0" {
		return nil, fmt.Errorf("the schemas are those of Kubernetes %s", version)
	}
	return proto.NewOpenAPIData(document)
})

// fitsSchema checks an object against its OpenAPI schema: required fields are there, no field is unknown, and each value has its type.
func fitsSchema(t *testing.T, kind schema.GroupVersionKind, document []byte) {
	t.Helper()
	all, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	name := "io.k8s.api." + cmp.Or(strings.TrimSuffix(kind.Group, ".k8s.io"), "core") + "." + kind.Version + "." + kind.Kind
	model := all.LookupModel(name)
	if model == nil {
		t.Fatalf("Kubernetes has no %s", name)
	}
	var object any
	if err := yaml.Unmarshal(document, &object); err != nil {
		t.Fatal(err)
	}
	for _, err := range validation.ValidateModel(object, model, kind.Kind) {
		t.Errorf("%v:\n%s", err, document)
	}
}
