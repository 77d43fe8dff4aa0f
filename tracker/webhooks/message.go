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

// Types of messages that stand for no event.
const (
	typeGap  = "webhook.gap"
	typeTest = "webhook.test"
)

const wireTime = "2006-01-02T15:04:05.000Z"

// message is what a webhook is to be sent.
type message struct {
	entry   string // id of the event's entry
	event   string // id of the event
	kind    string
	subject string
	id      string // webhook-id, the same however often it is sent
	body    []byte
}

// suffixOf tells the messages of one webhook from those of another.
func suffixOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "_" + hex.EncodeToString(sum[:6])
}

// messageOf is what a webhook is told of an event: type and timestamp, and the event as GET /v1/events has it.
func messageOf(e *events.Event, suffix string) message {
	b := make([]byte, 0, 512)
	b = append(append(b, `{"type":"`...), e.Type...)
	b = append(b, `","timestamp":"`...)
	b = time.UnixMilli(e.Ms).UTC().AppendFormat(b, wireTime)
	b = append(e.AppendJSON(append(b, `","data":`...)), '}')
	id := e.ID()
	return message{entry: e.At.ID(), event: id, kind: e.Type, subject: e.Subject, id: id + suffix, body: b}
}

// ownMessage is about the webhook itself: data holds what is told besides.
func ownMessage(scope model.Scope, webhook, kind, id string, at time.Time, data any) message {
	told := at.UTC().Format(wireTime)
	body, _ := json.Marshal(map[string]any{"type": kind, "timestamp": told, "data": map[string]any{
		"id": id, "type": kind, "time": told, "tenantId": scope.Tenant, "workspaceId": scope.Workspace, "subject": webhook, "data": data,
	}}) // texts and numbers: cannot fail
	return message{kind: kind, subject: webhook, id: id, body: body}
}

// gapText is the message of deliveries that were dropped, in which scripts replace $F and $T by when the first and the last of them
// happened, and $N by how many there were. No id has a dollar sign.
func gapText(scope model.Scope, webhook string) string {
	return `{"type":"` + typeGap + `","timestamp":"$T","data":{"type":"` + typeGap + `","time":"$T","tenantId":"` + scope.Tenant +
		`","workspaceId":"` + scope.Workspace + `","subject":"` + webhook +
		`","data":{"reason":"QUEUE_FULL","from":"$F","dropped":$N,"to":"$T"}}}`
}

// trimmedGap tells of events that the streams had dropped before they were taken.
func trimmedGap(scope model.Scope, webhook, suffix string, first *events.Event, g *events.Gap) message {
	m := ownMessage(scope, webhook, typeGap, "gap_"+strconv.Itoa(first.Shard)+"_"+first.At.ID()+suffix, g.To, map[string]any{
		"reason": "EVENTS_TRIMMED", "from": g.From.UTC().Format(wireTime), "to": g.To.UTC().Format(wireTime),
	})
	m.entry = first.At.ID()
	return m
}
