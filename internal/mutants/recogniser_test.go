package mutants

// recogniser is the code that decides whether the event loop answers a request itself. Each of its checks has a mutant.
const recogniser = "api/internal/beatparse/parse.go"

const doubted = "^TestWhatIsUnusualIsDoubted$"

func init() { mutants = append(mutants, ofRecogniser...) }

var ofRecogniser = []mutant{
	{"the beginning of another request is waited for to its end", recogniser, "if !begins(b) {", "if false {", "^TestADoubtIsSeenEarly$"},
	{"a head has no bound", recogniser, "case end >= MaxHead-2:", "case end >= 1<<30:", doubted},
	{"a CR ends a line", recogniser, "case b[end] != '\\r' || b[end+1] != '\\n':",
		"case b[end] != '\\r':", doubted},
	{"control bytes pass", recogniser, "odd := ((x - low) | (x + one) | x) & high",
		"odd := (x - one<<3 | x) & high", doubted},
	{"DEL passes", recogniser, "odd := ((x - low) | (x + one) | x) & high",
		"odd := ((x - low) | x) & high", doubted},
	{"bytes beyond ASCII pass", recogniser, "odd := ((x - low) | (x + one) | x) & high",
		"odd := ((x - low) &^ x) & high", doubted},
	{"an id may be empty", recogniser, "len(line) > len(prefixTask)+len(suffix)",
		"len(line) >= len(prefixTask)+len(suffix)", doubted},
	{"any version, and anything behind the id, passes", recogniser, "if string(line[id:]) != suffix {",
		"if string(line[id:id+10]) != suffix[:10] {", doubted},
	{"any id passes", recogniser, "range r.ID {\n\t\tif !plain[c] {", "range r.ID {\n\t\tif c == 0 {", doubted},
	{"a line without a colon passes", recogniser, "\tif colon < 0 {\n\t\treturn false",
		"\tif colon < 0 {\n\t\treturn true", doubted},
	{"no space need follow the colon", recogniser, "value[0] != ' ' || ", "", doubted},
	{"two spaces may follow the colon", recogniser, "value[1] == ' ' || ", "", doubted},
	{"a value may end with a space", recogniser, " || value[len(value)-1] == ' '", "", doubted},
	{"an empty value passes", recogniser, "if len(value) < 2 || ", "if len(value) < 1 || ", doubted},
	{"two hosts pass", recogniser, "return r.once(host) && isHost(value)", "return (r.once(host) || true) && isHost(value)", doubted},
	{"any name of a host passes", recogniser, "range name {\n\t\tif !plain[c] {", "range name {\n\t\tif c == 0 {", doubted},
	{"any port passes", recogniser, "range port {\n\t\tif c < '0' || c > '9' {", "range port {\n\t\tif c < '0' {", doubted},
	{"a host without a name passes", recogniser, "return len(name) > 0", "return true", doubted},
	{"two tokens pass", recogniser, "return r.once(authorization) && r.Token != nil",
		"return (r.once(authorization) || true) && r.Token != nil", doubted},
	{"another scheme passes", recogniser, "return r.once(authorization) && r.Token != nil",
		"return r.once(authorization)", doubted},
	{"two types pass", recogniser, "return r.once(contentType) && ",
		"return (r.once(contentType) || true) && ", doubted},
	{"any type passes", recogniser, "&& isJSON(value)", "&& len(value) > 0", doubted},
	{"two lengths pass", recogniser, "return r.once(contentLength) && ",
		"return (r.once(contentLength) || true) && ", doubted},
	{"two connection headers pass", recogniser, "return r.once(connection) && ",
		"return (r.once(connection) || true) && ", doubted},
	{"any connection header passes", recogniser, "(string(value) == \"keep-alive\" || string(value) == \"Keep-Alive\")",
		"len(value) > 0", doubted},
	{"two ids of a request pass", recogniser, "return r.once(requestID)",
		"return r.once(requestID) || true", doubted},
	{"unknown headers pass", recogniser, "\t\treturn true // no answer to a heartbeat depends on them\n\t}\n\treturn false",
		"\t\treturn true // no answer to a heartbeat depends on them\n\t}\n\treturn true", doubted},
	{"spaces before the token pass", recogniser, " || value[len(scheme)] == ' '", "", doubted},
	{"a length may overflow", recogniser, "if len(value) > 8 {", "if len(value) > 80 {", doubted},
	{"a length may have any characters", recogniser, "range value {\n\t\tif c < '0' || c > '9' {", "range value {\n\t\tif c < '+' {", doubted},
	{"a host is not needed", recogniser, "if r.seen&host == 0 || ", "if ", doubted},
	{"a length is not needed", recogniser, "r.length < 0 || ", "r.length < -1 || ", doubted},
	{"a body has no bound", recogniser, " || r.length > maxBody {", " {", doubted},
}
