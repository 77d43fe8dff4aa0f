package holdings

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// InventoryItem is one attempt that a worker reports to have.
type InventoryItem struct {
	OwnedAttempt
	Report  string // packed by AppendReport; empty: none
	Details string // compact JSON; empty: none
}

// Bare reports whether the item only says that the worker has the attempt.
func (i InventoryItem) Bare() bool { return i.Report == "" && i.Details == "" }

// TakeInventory compares the attempts that a worker reports with those that it holds. Reported ones are kept alive as by their own beats;
// the worker is notified of those that it no longer holds; and those missing from two of its beats in a row are taken from it, unless the
// beat has no number among those with an inventory. Of several items of an attempt, the first that reports something counts. It fails when
// Redis does not confirm a part of that.
func (s *Service) TakeInventory(ctx context.Context, h *WorkerBeatResponse, items []InventoryItem) error {
	held, err := s.HeldBy(ctx, "worker beat", h.Scope, h.Worker)
	if err != nil {
		return err
	}
	holds := make(map[OwnedAttempt]Holding, len(held))
	for _, k := range held {
		holds[k.name()] = k
	}
	var explained []*beats.Beat
	var strange []InventoryItem
	for _, item := range once(items) {
		k, ok := holds[item.OwnedAttempt]
		if !ok {
			strange = append(strange, item)
			continue
		}
		delete(holds, item.OwnedAttempt)
		explained = append(explained, &beats.Beat{Attempt: s.attemptOf(&k, h.At), Report: item.Report, Details: item.Details})
	}
	more, err := s.explainStrange(ctx, h, strange)
	if err != nil {
		return err
	}
	explained = append(explained, more...)
	s.beats.BeatMany(explained)
	for _, b := range explained {
		n := TaskNotice{TaskID: b.Attempt.TaskID, Attempt: b.Attempt.Number}
		switch code := model.CodeOf(b.Err); {
		case code == model.Unavailable || code == model.Overloaded:
			return b.Err
		case b.Err != nil:
			n.Error = code
			h.lose(n)
		case b.Cancel != nil:
			n.Reason = b.Cancel.Reason
			h.cancel(n, b.Attempt)
		}
	}
	return s.loseMissed(ctx, h, holds)
}

// once returns one item of each attempt: the first that reports something, else the first.
func once(items []InventoryItem) []InventoryItem {
	at := make(map[OwnedAttempt]int, len(items))
	found := make([]InventoryItem, 0, len(items))
	for _, item := range items {
		if i, listed := at[item.OwnedAttempt]; !listed {
			at[item.OwnedAttempt] = len(found)
			found = append(found, item)
		} else if found[i].Bare() {
			found[i] = item
		}
	}
	return found
}

// explainStrange finds out about attempts that a worker reports and does not hold. Its own ones get a beat, whose result explains them;
// those of other workers are lost to it; an unknown one is not lost: the store may have lost it, and its own token can prove it.
func (s *Service) explainStrange(ctx context.Context, h *WorkerBeatResponse, items []InventoryItem) ([]*beats.Beat, error) {
	names := make([]OwnedAttempt, len(items))
	for i, item := range items {
		names[i] = item.OwnedAttempt
	}
	attempts, known, err := s.owned(ctx, "worker beat", h.Scope, h.Worker, names)
	if err != nil {
		return nil, err
	}
	var explained []*beats.Beat
	for i, a := range attempts {
		switch {
		case a != nil:
			explained = append(explained, &beats.Beat{Attempt: a, Report: items[i].Report, Details: items[i].Details})
		case known[i]:
			h.lose(TaskNotice{TaskID: names[i].TaskID, Attempt: names[i].Number, Error: model.AttemptMismatch})
		}
	}
	return explained, nil
}

// maxMissed limits how many attempts one inventory can miss. Of more, the first in order count, so that the next beat misses the same
// ones and later beats find the rest.
const maxMissed = 500

// missedLife is how long the misses of an inventory are kept.
const missedLife = time.Hour

// loseMissed takes from the worker what two of its beats in a row have missed, and notifies it: if it has the attempt after all, because
// the response to its claim was late, it must stop. An inventory that is older than another, or a repeated one, is ignored for this.
func (s *Service) loseMissed(ctx context.Context, h *WorkerBeatResponse, missed map[OwnedAttempt]Holding) error {
	shard, ok := s.store.WorkerShard(h.Worker)
	if !ok || h.Inventory == "" {
		return nil
	}
	byText := make(map[string]Holding, len(missed))
	for _, k := range missed {
		byText[k.text] = k
	}
	texts := slices.Sorted(maps.Keys(byText))
	call := s.missedCall(shard, h.Scope, h.Worker, h.Inventory, texts[:min(len(texts), maxMissed)])
	re, err := s.store.Do(ctx, "worker beat", call)
	if err != nil {
		return err
	}
	var lost []Holding
	for _, text := range readEntries(re) {
		lost = append(lost, byText[text])
	}
	why := lostEvidence{loss: true, reason: model.NotInInventory, lastBeat: h.At}
	if _, err = s.takeFrom(ctx, "worker beat", s.store.SweeperID(), lost, why); err != nil {
		return err
	}
	for _, k := range lost {
		n := k.name()
		h.lose(TaskNotice{TaskID: n.TaskID, Attempt: n.Number, Error: model.Expired})
	}
	return nil
}
