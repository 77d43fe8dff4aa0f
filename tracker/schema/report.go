package schema

import (
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// PackSep separates the parts of a packed report: <reportedMs> TAB <worker> TAB <pct> TAB <message>, each part empty when it was not
// reported. No part contains a TAB: IDs have no such character and compact JSON text escapes it.
const PackSep = "\t"

// AppendReport appends a packed report to dst: ms since the epoch by the worker's own clock (0: not reported), a valid worker ID, a JSON
// number and a JSON string literal, each of which may be empty. If all are empty it appends nothing, which means "no report".
func AppendReport(dst []byte, reportedMs int64, worker, pct, message []byte) []byte {
	if reportedMs == 0 && len(worker) == 0 && len(pct) == 0 && len(message) == 0 {
		return dst
	}
	if reportedMs != 0 {
		dst = strconv.AppendInt(dst, reportedMs, 10)
	}
	dst = append(dst, '\t')
	dst = append(dst, worker...)
	dst = append(dst, '\t')
	dst = append(dst, pct...)
	dst = append(dst, '\t')
	return append(dst, message...)
}

func PackReport(r model.Report) string {
	var ms int64
	if !r.ReportedAt.IsZero() {
		ms = r.ReportedAt.UnixMilli()
	}
	return string(AppendReport(nil, ms, []byte(r.WorkerID), []byte(r.Progress.Pct), []byte(r.Progress.Message)))
}

func UnpackReport(s string) model.Report {
	var r model.Report
	at, rest, _ := strings.Cut(s, PackSep)
	r.ReportedAt = ParseMillis(at)
	r.WorkerID, rest, _ = strings.Cut(rest, PackSep)
	r.Progress.Pct, r.Progress.Message, _ = strings.Cut(rest, PackSep)
	return r
}
