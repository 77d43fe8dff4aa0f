package webhooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// These are the types of messages that belong to no event.
const (
	typeGap  = "webhook.gap"
	typeTest = "webhook.test"
)

const wireTime = "2006-01-02T15:04:05.000Z"

// message is one message for a webhook.
type message struct {
	entry   string // ID of the event's entry
	event   string // ID of the event
	kind    string
	subject string
	id      string // webhook-id, the same for every try
	body    []byte
}

// suffixOf returns a suffix that makes message IDs of different webhooks distinct.
func suffixOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "_" + hex.EncodeToString(sum[:6])
}

// messageOf returns the message for an event: type and timestamp, and the event in the format of GET /v1/events.
func messageOf(e *events.Event, suffix string) message {
	b := make([]byte, 0, 512)
	b = append(append(b, `{"type":"`...), e.Type...)
	b = append(b, `","timestamp":"`...)
	b = time.UnixMilli(e.Ms).UTC().AppendFormat(b, wireTime)
	b = append(e.AppendJSON(append(b, `","data":`...)), '}')
	id := e.ID()
	return message{entry: e.At.ID(), event: id, kind: e.Type, subject: e.Subject, id: id + suffix, body: b}
}

// ownMessage returns a message about the webhook itself, with additional data.
func ownMessage(scope model.Scope, webhook, kind, id string, at time.Time, data any) message {
	timestamp := at.UTC().Format(wireTime)
	body, _ := json.Marshal(map[string]any{"type": kind, "timestamp": timestamp, "data": map[string]any{
		"id": id, "type": kind, "time": timestamp, "tenantId": scope.Tenant, "workspaceId": scope.Workspace, "subject": webhook, "data": data,
	}}) // strings and numbers: cannot fail
	return message{kind: kind, subject: webhook, id: id, body: body}
}

// gapText returns the message about dropped deliveries. Scripts replace $F and $T by when the first and the last of them happened, and $N
// by their number. IDs contain no dollar sign.
func gapText(scope model.Scope, webhook string) string {
	return `{"type":"` + typeGap + `","timestamp":"$T","data":{"type":"` + typeGap + `","time":"$T","tenantId":"` + scope.Tenant +
		`","workspaceId":"` + scope.Workspace + `","subject":"` + webhook +
		`","data":{"reason":"QUEUE_FULL","from":"$F","dropped":$N,"to":"$T"}}}`
}

// trimmedGap returns the message about events that the streams had dropped before they were collected.
func trimmedGap(scope model.Scope, webhook, suffix string, first *events.Event, g *events.Gap) message {
	m := ownMessage(scope, webhook, typeGap, "gap_"+strconv.Itoa(first.Shard)+"_"+first.At.ID()+suffix, g.To, map[string]any{
		"reason": "EVENTS_TRIMMED", "from": g.From.UTC().Format(wireTime), "to": g.To.UTC().Format(wireTime),
	})
	m.entry = first.At.ID()
	return m
}
