package ess

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/protocol/ess"
)

// top runs Top, on the documents of standard input if there are no others.
func top(t *testing.T, in string, o TopOptions) string {
	t.Helper()
	s, out, msg := streams(in)
	o.At = begin
	if err := Top(t.Context(), o, s); err != nil || msg.Len() > 0 {
		t.Fatalf("got %v\n%s; want err == nil and msg.Len() == 0", err, msg)
	}
	return out.String()
}

// documents returns documents, each one line. Each feed has several, with different build
// times and entries.
func documents(rng *rand.Rand, feeds, from int) []string {
	minute := ess.Minute(begin)
	var lines []string
	for f := range feeds {
		url := fmt.Sprintf("http://e.com/%d", from+f)
		for range 1 + rng.IntN(3) {
			var entries []ess.Entry
			for range rng.IntN(8) {
				entries = append(entries, ess.Entry{Minute: minute - rng.Int64N(50) + 5, Sum: uint8(rng.IntN(3))})
			}
			lines = append(lines, string(ess.AppendESSLine(nil, ess.Time(minute-rng.Int64N(4)), url, entries)))
		}
	}
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

// files writes each line into a file of its own.
func files(t *testing.T, lines []string) []string {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for i, l := range lines {
		name := filepath.Join(dir, fmt.Sprintf("%d.nno", i)) // the extension has no effect
		if err := os.WriteFile(name, []byte(l), 0o666); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestTopParts checks that top(top A ∪ top B) = top(A ∪ B) if A and B have different feeds:
// with files and with lines, in any order, and with entries that newer documents lack.
func TestTopParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		n := 1 + rng.IntN(30)
		a, b := documents(rng, rng.IntN(8), 0), documents(rng, 1+rng.IntN(8), 100)
		all := slices.Concat(a, b)
		want := ""
		for range 3 {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			got := top(t, "", TopOptions{Documents: files(t, all), N: n})
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("round %d: in another order\n%s\nwant\n%s\n%q", round, got, want, all)
			}
		}
		parts := []string{"", ""}
		for i, part := range [][]string{a, b} {
			if len(part) == 0 {
				parts[i] = top(t, "\n", TopOptions{Lines: true, N: n})
				continue
			}
			parts[i] = top(t, "", TopOptions{Documents: files(t, part), N: n})
		}
		if got := top(t, "", TopOptions{Documents: files(t, parts), N: n}); got != want {
			t.Fatalf("round %d: from parts\n%s\nfrom all\n%s", round, got, want)
		}
		// The parts are files with one document a line, which can be read again.
		line := strings.ReplaceAll(strings.Replace(want, ",\n", ",,", 1), "\n", "") + "\n"
		for i, part := range [][]string{a, b} {
			parts[i] = strings.TrimSuffix(top(t, "", TopOptions{Lines: true, N: n, Documents: files(t, []string{strings.Join(part, "\n")})}), "\n")
		}
		if got := top(t, strings.Join(parts, "\n")+"\n", TopOptions{Lines: true, N: n}); got != line {
			t.Fatalf("round %d: from lines\n%s\nfrom files\n%s", round, got, line)
		}
	}
}

// TestTopLongLines checks that long lines, and a last line without a newline, are read.
func TestTopLongLines(t *testing.T) {
	var in bytes.Buffer
	minute := ess.Minute(begin)
	for i := range 3 {
		var entries []ess.FeedEntry
		for k := range 20_000 {
			entries = append(entries, ess.FeedEntry{Feed: fmt.Sprintf("http://e%d.example/", k), Entry: ess.Entry{Minute: minute - int64(k)}})
		}
		in.Write(ess.AppendNNOLine(nil, begin, entries))
		fmt.Fprintf(&in, "\n%d,http://short.example/%d,1,2\r\n\n", begin.Unix(), i)
	}
	fmt.Fprintf(&in, "%d,http://last.example/,0,9", begin.Unix())
	got := strings.Split(strings.TrimSpace(top(t, in.String(), TopOptions{Lines: true, N: 5})), ",")
	want := []string{fmt.Sprint(begin.Unix()), "", "http://e0.example/", "0", "0", "http://last.example/", "0", "9", "http://e1.example/", "1", "0"}
	if !slices.Equal(got[:len(want)], want) {
		t.Errorf("got %q; want slices.Equal(got[:len(want)], want)", got)
	}
}

// TestTopBadLine checks that an invalid document is reported once, with file and line, and
// that others are read.
func TestTopBadLine(t *testing.T) {
	s, out, msg := streams(fmt.Sprintf("nonsense\n%d,http://e.com/,1,2\n%d,http://f.com/,oops,1,2,x\n", begin.Unix(), begin.Unix()))
	err := Top(t.Context(), TopOptions{Common: Common{At: begin}, Lines: true, N: 9}, s)
	if err != nil || s.Report.Errors() != 1 || !strings.Contains(msg.String(), "standard input:1: ") || !strings.Contains(msg.String(), "standard input:3: ") {
		t.Errorf("%v, %s", err, msg)
	}
	if want := fmt.Sprintf("%d,,http://e.com/,1,2,http://f.com/%%2Coops,1,2\n", begin.Unix()); out.String() != want {
		t.Errorf("got %s; want out.String() == want", out)
	}
}

// TestTopLineTooLong checks that a line that exceeds the limit ends its file with an error, and
// that the lines before it are read.
func TestTopLineTooLong(t *testing.T) {
	s, out, msg := streams("")
	s.In = io.MultiReader(strings.NewReader(fmt.Sprintf("%d,http://e.com/,1,2\n", begin.Unix())), bytes.NewReader(bytes.Repeat([]byte("x"), maxDocument+1)))
	err := Top(t.Context(), TopOptions{Common: Common{At: begin}, Lines: true, N: 9}, s)
	if err != nil || s.Report.Errors() != 1 || !strings.Contains(msg.String(), "standard input:2: it is larger than 64 MiB") {
		t.Errorf("%v, %s", err, msg)
	}
	if want := fmt.Sprintf("%d,,http://e.com/,1,2\n", begin.Unix()); out.String() != want {
		t.Errorf("got %q; want out.String() == want", out)
	}
}
