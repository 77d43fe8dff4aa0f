package output

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 350 * time.Millisecond: "350ms", 1500 * time.Millisecond: "1.5s", 12 * time.Second: "12s", 119 * time.Second: "119s",
		200 * time.Second: "3m20s", 2 * time.Hour: "2h", 26*time.Hour + 5*time.Minute: "26h5m", 52 * time.Hour: "2d4h", -time.Minute: "-60s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 2048: "2.0 KiB", 3 << 30: "3.0 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// Text that workers report must neither move the reader's cursor nor break a table.
func TestTablesAreCleanAndAligned(t *testing.T) {
	var b strings.Builder
	p := &Printer{W: &b, Format: Table}
	rows := p.Rows("NAME", "STATE", "NOTE")
	long := strings.Repeat("x", 60)
	for _, row := range [][]Cell{{Text("a\x1b[2J\nb"), Word("FAILED"), {}}, {Text("é"), Word("RUNNING"), Text(long)}} {
		if err := rows.Write([][]Cell{row}); err != nil {
			t.Fatal(err)
		}
	}
	want := "NAME    STATE   NOTE\na[2J b  FAILED  -\né       RUNNING  " + long[:43] + "…\n"
	if b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
	p.Colour = true
	if got := p.Paint(Bad, "LOST"); got != "\x1b[31mLOST\x1b[0m" {
		t.Errorf("%q", got)
	}
}
