package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The records whose fields are defined on both sides, by the prefix of their constants.
const (
	ofTask, ofDoc, ofWorker, ofMachine, ofNone = "Task", "Doc", "Worker", "machine", ""
	ofSchedule, ofScheduleDoc                  = "Schedule", "ScheduleDoc"
)

// keyExpressions are the expressions with which scripts name the keys of hashes; keysOfFile has other ones for each file.
var keyExpressions = map[string]string{
	"task.key": ofTask, "task.doc": ofDoc, "w.key": ofWorker, "w.machine": ofMachine,
	"clock": ofNone, "PROGRESS": ofNone, "CANCELS": ofNone, "meta": ofNone,
	"HOOK": ofNone, "ABOUT": ofNone, "BODIES": ofNone, "SEEN": ofNone,
}

var keysOfFile = map[string]map[string]string{
	"beats/beat.lua":                {"KEYS[k + 3]": ofNone, "KEYS[k + 4]": ofNone},
	"beats/deliver.lua":             {"KEYS[2]": ofNone},
	"beats/tick.lua":                {"k[3]": ofNone, "k[4]": ofNone, "k[24]": ofNone},
	"events/hosts.lua":              {"key": ofWorker},
	"events/trim.lua":               {"KEYS[k + 1]": ofNone},
	"holdings/missed.lua":           {"KEYS[1]": ofNone, "KEYS[2]": ofWorker},
	"holdings/notify.lua":           {"KEYS[2]": ofWorker},
	"holdings/owned.lua":            {"task": ofTask},
	"holdings/recovery_done.lua":    {"KEYS[4]": ofWorker},
	"holdings/recovery_read.lua":    {"KEYS[i + 1]": ofWorker},
	"lib/fresh.lua":                 {"key": ofWorker},
	"lib/view.lua":                  {"key": ofNone}, // its lists are checked separately
	"queues/required_labels.lua":    {"key": ofDoc},
	"queues/claimed.lua":            {"KEYS[1]": ofNone},
	"schedules/schedule_decide.lua": {"KEYS[1]": ofSchedule},
	"schedules/schedule_read.lua":   {"KEYS[k + 1]": ofScheduleDoc},
	"schedules/schedule_record.lua": {"KEYS[2]": ofSchedule},
	"schedules/schedule_save.lua":   {"KEYS[4]": ofSchedule, "KEYS[5]": ofScheduleDoc},
	"schedules/schedule_settle.lua": {"KEYS[3]": ofSchedule},
	"schedules/schedule_switch.lua": {"KEYS[4]": ofSchedule},
	"stats/levels.lua":              {"KEYS[1]": ofNone},
	"stats/report.lua":              {"STEP": ofNone},
	"stats/shards.lua":              {"KEYS[k]": ofNone},
	"store/relist.lua":              {"task": ofTask, "worker": ofWorker},
	"store/schema.lua":              {"KEYS[1]": ofNone},
	"brake/brake_tasks.lua":         {"key": ofTask},
	"brake/brake_workers.lua":       {"key": ofWorker},
	"brake/census_workers.lua":      {"KEYS[i]": ofWorker},
	"sweep/worker_drains.lua":       {"KEYS[i]": ofWorker},
	"reconcile/worker_ended.lua":    {"KEYS[i + 2]": ofWorker},
	"tasks/await.lua":               {"key": ofTask},
	"tasks/idempotency_key.lua":     {"KEYS[1]": ofNone},
	"lib/idempotency.lua":           {"key": ofNone},
	"schedules/schedule_fire.lua":   {"KEYS[2]": ofSchedule},
	"tasks/names.lua":               {"key": ofTask},
	"tasks/states.lua":              {"key": ofTask},
	"webhooks/webhook_read.lua":     {"KEYS[i]": ofNone},
	"webhooks/webhooks_begin.lua":   {"KEYS[1]": ofNone},
	"webhooks/webhooks_peek.lua":    {"KEYS[i]": ofNone},
	"webhooks/webhooks_taken.lua":   {"KEYS[1]": ofNone},
	"workers/machine_drain.lua":     {"machine": ofMachine},
	"workers/machine_read.lua":      {"KEYS[1]": ofMachine},
	"workers/registration.lua":      {"KEYS[1]": ofNone},
	"workers/worker_beat.lua":       {"key": ofWorker},
	"workers/worker_candidates.lua": {"KEYS[i]": ofWorker},
	"webhooks/webhooks_resume.lua":  {"KEYS[1]": ofNone},
	"workers/worker_names.lua":      {"key": ofWorker},
	"workers/worker_read.lua":       {"KEYS[i]": ofWorker},
	"workers/worker_reserve.lua":    {"KEYS[1]": ofWorker},
	"workers/worker_selected.lua":   {"KEYS[1]": ofWorker},
}

// ofGoOnly are fields that no script names: they are passed as arguments and returned with the whole record.
var ofGoOnly = map[string][]string{
	ofTask:   {TaskKey, TaskAsset, TaskNoRenewal},
	ofWorker: {WorkerName, WorkerHostname, WorkerPID},
}

// Scripts and Go use the same fields, and the scripts' headers list them.
func TestFieldsMatchLua(t *testing.T) {
	inGo, named := fieldConstants(t), map[string]map[string]string{
		ofTask: {}, ofDoc: {}, ofWorker: {}, ofMachine: {}, ofSchedule: {}, ofScheduleDoc: {},
	}
	files, err := filepath.Glob("../../lua/*/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file := strings.TrimPrefix(filepath.ToSlash(path), "../../lua/")
		for _, use := range fieldsIn(t, file, string(text)) {
			if use.record != ofNone {
				named[use.record][use.field] = file
			}
		}
	}
	listed := map[string][]string{
		ofTask: listedFields(t, "task", 0), ofWorker: listedFields(t, "worker", 0), ofMachine: listedFields(t, "worker", 1),
		ofSchedule: listedFields(t, "schedule", 0),
	}
	for record, uses := range named {
		want := inGo[record]
		if record == ofMachine { // Go has only the reply of its script
			want = listed[ofMachine]
		} else if list, ok := listed[record]; ok && !slices.Equal(list, want) {
			t.Errorf("the header of the script lists %q of %s, Go %q", list, record, want)
		}
		for field, file := range uses {
			if !slices.Contains(want, field) {
				t.Errorf("%s names %q, which is no field of %s", file, field, record)
			}
			if slices.Contains(ofGoOnly[record], field) {
				t.Errorf("%s names %q of %s, which is listed as Go's alone", file, field, record)
			}
		}
		for _, field := range want {
			if uses[field] == "" && !slices.Contains(ofGoOnly[record], field) {
				t.Errorf("no script names %q of %s", field, record)
			}
		}
	}
}

// fieldConstants returns the values of the constants of fields.go by the prefix of their names, sorted.
func fieldConstants(t *testing.T) map[string][]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "fields.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string][]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		prefix := regexp.MustCompile(`^(Task|Doc|Worker|ScheduleDoc|Schedule)`).FindString(spec.Names[0].Name)
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil || prefix == "" || slices.Contains(fields[prefix], value) {
			t.Errorf("%s is no field, or one that is there already", spec.Names[0].Name)
		}
		fields[prefix] = append(fields[prefix], value)
		return true
	})
	for _, list := range fields {
		slices.Sort(list)
	}
	return fields
}

// listedFields returns the names in a list of fields of a fragment's header, sorted.
func listedFields(t *testing.T, fragment string, nth int) (fields []string) {
	t.Helper()
	text, err := os.ReadFile("../../lua/lib/" + fragment + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?m)^-- Fields of .*:\n((?:--   .*\n)+)`).FindAllStringSubmatch(string(text), -1)
	if len(lists) <= nth {
		t.Fatalf("lib/%s.lua lists no fields", fragment)
	}
	for item := range strings.SplitSeq(strings.ReplaceAll(lists[nth][1], "\n--   ", " "), ";") {
		name, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(item, "--   ")), " ")
		fields = append(fields, strings.TrimSuffix(strings.TrimSpace(name), "."))
	}
	slices.Sort(fields)
	return fields
}

type fieldUse struct{ record, field string }

var (
	hashCall  = regexp.MustCompile(`(?:redis\.call|write)\('(HGET|HSET|HMGET|HDEL|HINCRBY|HSTRLEN)', `)
	moveCall  = regexp.MustCompile(`\bmove\(task, [^,)]*, `)
	setCall   = regexp.MustCompile(`\bset\('([a-z]+)'`) // of worker_beat.lua, and what its record begins with
	ofFields  = regexp.MustCompile(`(?:\bf|\btask\.f|\bw\.f|\bknown|\bold\.f)\.([a-z]+)\b`)
	fieldList = regexp.MustCompile(`(?m)^local (GLANCED|LISTED|RESULT) = \{([^}]*)\}|^local record = \{('bl', L, 'lb', now)\}`)
	quoted    = regexp.MustCompile(`^'([A-Za-z]+)'$`)
	literal   = regexp.MustCompile(`'([A-Za-z]+)'`)
)

// fieldsIn returns the fields that a script names.
func fieldsIn(t *testing.T, file, text string) (uses []fieldUse) {
	t.Helper()
	add := func(record, arg string) {
		if m := quoted.FindStringSubmatch(arg); m != nil {
			uses = append(uses, fieldUse{record, m[1]})
		}
	}
	for _, at := range hashCall.FindAllStringSubmatchIndex(text, -1) {
		command, args := text[at[2]:at[3]], arguments(text[at[1]:])
		record, known := keysOfFile[file][args[0]]
		if !known {
			if record, known = keyExpressions[args[0]]; !known {
				t.Errorf("%s: of which record is %s in %s? Add it to keysOfFile", file, args[0], command)
			}
		}
		for i, arg := range args[1:] {
			if command != "HSET" && command != "HINCRBY" || i%2 == 0 {
				add(record, arg)
			}
		}
	}
	for _, at := range moveCall.FindAllStringIndex(text, -1) {
		for i, arg := range arguments(text[at[1]:]) {
			if i%2 == 0 {
				add(ofTask, arg)
			}
		}
	}
	for _, m := range setCall.FindAllStringSubmatch(text, -1) {
		uses = append(uses, fieldUse{ofWorker, m[1]})
	}
	record := ofTask
	if file == "lib/worker.lua" || strings.Contains(text, "--#include lib/worker.lua") {
		record = ofWorker
	}
	if file == "lib/schedule.lua" || strings.Contains(text, "--#include lib/schedule.lua") {
		record = ofSchedule
	}
	for _, m := range ofFields.FindAllStringSubmatch(text, -1) {
		uses = append(uses, fieldUse{record, m[1]})
	}
	of := map[string]string{"GLANCED": ofTask, "LISTED": ofDoc, "RESULT": ofDoc, "": ofWorker}
	for _, m := range fieldList.FindAllStringSubmatch(text, -1) {
		for _, name := range literal.FindAllStringSubmatch(m[2]+m[3], -1) {
			uses = append(uses, fieldUse{of[m[1]], name[1]})
		}
	}
	return uses
}

// arguments returns the arguments of a call, up to its closing parenthesis.
func arguments(text string) (args []string) {
	depth, from, inside := 0, 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			inside = !inside
		case inside:
		case strings.ContainsRune("([{", c):
			depth++
		case depth > 0 && strings.ContainsRune(")]}", c):
			depth--
		case depth == 0 && (c == ',' || c == ')'):
			args = append(args, strings.TrimSpace(text[from:i]))
			if c == ')' {
				return args
			}
			from = i + 1
		}
	}
	return args
}
