package httpapi

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Param is a parameter of a route's query, or one of its headers, as the OpenAPI document describes it.
type Param struct {
	Name        string
	Description string
	Schema      Schema // of its value

	Repeats bool // it may be given several times
	Commas  bool // one value is a list, with commas between its entries
}

// Schema is a JSON schema.
type Schema map[string]any

// IDSchema is the schema of an id.
var IDSchema = Schema{"type": "string", "pattern": `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`}

// Of returns the schema of a value of a type, such as string or boolean.
func Of(kind string) Schema { return Schema{"type": kind} }

// OneOf returns the schema of a value that is one of the words.
func OneOf[T ~string](words ...T) Schema { return Schema{"type": "string", "enum": words} }

// ListOf returns the schema of a list.
func ListOf(entries Schema) Schema { return Schema{"type": "array", "items": entries} }

// With returns the schema with one more keyword.
func (s Schema) With(keyword string, value any) Schema {
	s[keyword] = value
	return s
}

// Between returns the schema of a whole number.
func Between(least, most int64) Schema {
	return Of("integer").With("minimum", least).With("maximum", most)
}

// The parameters of several routes.
var (
	ParamTenantID = Param{
		Name: "tenantId", Schema: IDSchema, Description: "Half of the scope. Default: the token's; required where the token says *.",
	}
	ParamWorkspaceID = Param{Name: "workspaceId", Schema: IDSchema, Description: "The other half."}
	ParamQueue       = Param{Name: "queue", Schema: IDSchema, Description: "Only what is of this queue."}
	ParamType        = Param{Name: "type", Schema: IDSchema, Description: "Only tasks of this type, or workers that run it."}
	ParamReason      = Param{Name: "reason", Schema: OneOf(model.Reasons...), Description: "Only tasks that failed for this reason."}
	ParamLiveness    = Param{Name: "liveness", Schema: OneOf("FRESH", "LATE", "LOST"), Description: "Only what is of this liveness."}
	ParamStatus      = Param{Name: "status", Schema: OneOf(v1.WorkerStatuses...), Description: "Only workers, or machines, of this status."}
	ParamOrder       = Param{Name: "order", Schema: OneOf("asc", "desc").With("default", "asc"), Description: "Which way round the list is."}
	ParamPageSize    = Param{
		Name: "pageSize", Schema: Of("integer").With("default", 100), Description: "Entries per page, clamped to 1 to 100.",
	}
	ParamPageToken = Param{
		Name: "pageToken", Schema: Of("string"), Description: "The nextPageToken of the page before, with the same filter.",
	}
	ParamLabel = Param{
		Name: "label", Schema: ListOf(Of("string")), Repeats: true,
		Description: "Only what has this label, key=value. May be given several times; all must match.",
	}
	ParamMachineID = Param{
		Name: "machineId", Schema: IDSchema,
		Description: "Only workers of this machine, or tasks of its workers, as long as these are known.",
	}
)

// IdempotencyKey is the header that makes a repeat safe.
func IdempotencyKey(description string) Param {
	return Param{
		Name: "Idempotency-Key", Schema: Of("string").With("minLength", 1).With("maxLength", 255), Description: description,
	}
}
