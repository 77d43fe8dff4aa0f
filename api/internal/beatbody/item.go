package beatbody

import (
	"encoding/json"
	"fmt"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Items decodes a list of a worker's attempts, each as a heartbeat is; nil if there is no list. list is its name in the body.
func Items(list string, raws []json.RawMessage) ([]holdings.InventoryItem, error) {
	if raws == nil {
		return nil, nil
	}
	items := make([]holdings.InventoryItem, len(raws))
	for i, raw := range raws {
		var b Body
		path := fmt.Sprintf("%s[%d]", list, i)
		s := jsonscan.Scanner{Text: raw}
		switch {
		case s.Peek() != '{' || !b.Decode(&s, true):
			return nil, httpapi.InvalidField(path, path+" is not an object")
		case b.Seen&FieldTaskID == 0 || !model.ValidID(b.TaskID):
			return nil, httpapi.InvalidID(path + ".taskId")
		}
		if r := b.Check(); r != nil {
			return nil, httpapi.InvalidField(path+"."+r.Body.Field, path+": "+r.Body.Message)
		}
		items[i] = b.item(holdings.OwnedAttempt{TaskID: string(b.TaskID), Number: b.Attempt})
	}
	return items, nil
}

// Progress decodes an object with the progress of an attempt.
func Progress(raw json.RawMessage, of holdings.OwnedAttempt) (item holdings.InventoryItem, err error) {
	var b Body
	s := jsonscan.Scanner{Text: raw}
	if s.Peek() != '{' || !b.Decode(&s, false) {
		return item, httpapi.InvalidField("progress", "progress is not an object")
	}
	b.Attempt, b.Seen = of.Number, b.Seen|fieldAttempt
	if r := b.Check(); r != nil {
		return item, httpapi.InvalidField("progress."+r.Body.Field, "progress: "+r.Body.Message)
	}
	return b.item(of), nil
}

func (b *Body) item(of holdings.OwnedAttempt) holdings.InventoryItem {
	return holdings.InventoryItem{
		OwnedAttempt: of, Report: string(schema.AppendReport(nil, b.ReportedMs, nil, b.Pct, b.Message)), Details: string(b.Details),
	}
}
