package pages

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
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestAgain: a site that is updated after entries were added and removed is the same as a site
// that is written at once.
func TestAgain(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	random := rand.New(rand.NewPCG(11, 12))
	d := testdir.New(t)
	feed := func(n int) string { return fmt.Sprintf("http://%d.example/", n) }
	for n := range 5 {
		if _, err := d.Feed(feed(n), fmt.Sprint("Feed ", n%4), "etc/categories="+[]string{"A", "a/B", "C", "", "a"}[n]); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	come := func(n int) {
		for range n {
			i := len(paths)
			files := []string{fmt.Sprintf("title=Title %d of %d", i, random.IntN(9)), "content=<p>text é <img src=http://x.example/a.png>", fmt.Sprint("id=urn:x:", i)}
			if random.IntN(3) > 0 {
				files = append(files, fmt.Sprintf("pubdate=2023-11-%02dT10:00:00Z", 1+random.IntN(9)))
			}
			if random.IntN(2) == 0 {
				files = append(files, "type=text/html")
			}
			path, err := d.Entry(feed(random.IntN(6)), []string{"new", "cur"}[i%2], testdir.Unique(1700000000+int64(random.IntN(20)), i+1)+[]string{"", ";2,S"}[i%2], files...)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	to := t.TempDir()
	run := func(name string) map[string]string {
		t.Helper()
		c := Common{Dir: d.Path, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}
		var out, messages bytes.Buffer
		s := cmdline.NewStreams("lektor-pages", strings.NewReader(""), &out, &messages)
		if err := HTML(t.Context(), HTMLOptions{Common: c, Output: filepath.Join(to, name), PerPage: 3, Title: "T"}, s); err != nil {
			t.Fatal(err)
		}
		if err := HTML(t.Context(), HTMLOptions{Common: c, Output: filepath.Join(to, name+" of 20"), PerPage: 7, Newest: 20, Images: true}, s); err != nil {
			t.Fatal(err)
		}
		if err := Mbox(t.Context(), MboxOptions{Common: c}, s); err != nil {
			t.Fatal(err)
		}
		for _, mail := range []string{"", "kim@example.com"} {
			if err := Digest(t.Context(), DigestOptions{Common: c, Entries: paths, Lines: 3, Images: true, Mail: mail}, s); err != nil {
				t.Fatal(err)
			}
		}
		links(t, filepath.Join(to, name))
		return map[string]string{
			"site": tree(t, filepath.Join(to, name)), "site of 20": tree(t, filepath.Join(to, name+" of 20")),
			"printed": out.String(), "messages": messages.String(),
		}
	}
	for round := range 4 {
		switch round {
		case 0:
			come(50)
		case 1:
			come(1)
		case 2:
			come(9)
			for _, i := range []int{1, 8, 40, 41, 55} {
				if err := os.RemoveAll(paths[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		again := run("again")
		for what, text := range run(fmt.Sprint("round ", round)) {
			if again[what] != text {
				t.Errorf("round %d: %s is\n%s\nnot\n%s", round, what, again[what], text)
			}
		}
	}
}

// cuts returns contents that a power cut may leave of a file that was not synced.
func cuts(text []byte) map[string][]byte {
	nul := func(from, to int) []byte {
		b := bytes.Clone(text)
		clear(b[from:to])
		return b
	}
	line := bytes.IndexByte(text, '\n') + 1
	return map[string][]byte{
		"empty": {}, "NULs": nul(0, len(text)), "NULs at first": nul(0, len(text)/2), "the head is NULs": nul(0, line),
		"NULs in the middle": nul(len(text)/3, len(text)/2), "NULs at last": nul(len(text)/2, len(text)),
		"a part of the head": text[:5], "the head": text[:line-1], "the head and its end": text[:line], "half": text[:len(text)/2], "all but a byte": text[:len(text)-1],
	}
}

// TestLedgerAfterAPowerCut: whatever a power cut leaves of a ledger, the next run writes the same site, and
// delivers no message twice.
func TestLedgerAfterAPowerCut(t *testing.T) {
	d, add := someMail(t)
	add(0, 9)
	site, box := filepath.Join(t.TempDir(), "site"), filepath.Join(t.TempDir(), "mail")
	if err := write(t, d, site); err != nil {
		t.Fatal(err)
	}
	runMail(t, "maildir", d.Path, box)
	// A message that was read would be in new/ again.
	if read, err := filepath.Glob(filepath.Join(box, "new", "*")); err != nil || len(read) != 9 {
		t.Fatal(read, err)
	} else if err := os.Rename(read[4], filepath.Join(box, "cur", filepath.Base(read[4])+":2,S")); err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct {
		of, ledger string
		except     []string
		run        func(to string) error
	}{
		{site, ledgerName, nil, func(to string) error { return write(t, d, to) }},
		// Lines are synced before their messages appear, so no power cut removes the last ones.
		{box, mailLedgerName, []string{"half", "NULs at last", "all but a byte", "the head and its end"}, func(to string) error {
			var out, messages bytes.Buffer
			err := runOf("maildir", d.Path, to, cmdline.NewStreams("lektor-pages", strings.NewReader(""), &out, &messages), nil)
			if out.Len()+messages.Len() > 0 {
				t.Errorf("printed %s%s", &out, &messages)
			}
			return err
		}},
	} {
		whole := tree(t, l.of)
		text, err := os.ReadFile(filepath.Join(l.of, l.ledger))
		if err != nil {
			t.Fatal(err)
		}
		for what, left := range cuts(text) {
			if slices.Contains(l.except, what) {
				continue
			}
			to := copyOf(t, l.of)
			if err := os.WriteFile(filepath.Join(to, l.ledger), left, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := l.run(to); err != nil {
				t.Errorf("%s, %s: %v", l.ledger, what, err)
				continue
			}
			again, err := os.ReadFile(filepath.Join(to, l.ledger))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(string(text), "\n") {
				if !strings.Contains(string(again), line) {
					t.Errorf("%s, %s: no %q in\n%s", l.ledger, what, line, again)
				}
			}
			if err := os.WriteFile(filepath.Join(to, l.ledger), text, 0o600); err != nil { // lines may be in another order
				t.Fatal(err)
			}
			if got := tree(t, to); got != whole {
				t.Errorf("%s, %s:\n%s\nnot\n%s", l.ledger, what, got, whole)
			}
		}
		for _, other := range []string{"lektor-site 2\n", "# a file\nof mine", "\nx"} {
			to := copyOf(t, l.of)
			if err := os.WriteFile(filepath.Join(to, l.ledger), []byte(other), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := l.run(to); err == nil || !strings.Contains(err.Error(), "another") {
				t.Errorf("%s is %q: %v", l.ledger, other, err)
			}
		}
	}
}

// TestMaildirOfAKilledRun: a maildir that a killed run has begun is completed. A directory that holds
// something else is refused.
func TestMaildirOfAKilledRun(t *testing.T) {
	d, add := someMail(t)
	add(0, 1)
	for _, begun := range [][]string{{}, {"tmp"}, {"cur"}, {"tmp", "new"}, {"cur", "new", "tmp"}} {
		to := filepath.Join(t.TempDir(), "mail")
		for _, sub := range append(begun, "") {
			if err := os.MkdirAll(filepath.Join(to, sub), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		runMail(t, "maildir", d.Path, to)
		if names, _ := filepath.Glob(filepath.Join(to, "new", "*")); len(names) != 1 {
			t.Errorf("after %v: %v", begun, names)
		}
	}
	for _, other := range [][]string{{"tmp", "letters"}, {"letters"}} {
		to := filepath.Join(t.TempDir(), "mail")
		for _, sub := range other {
			if err := os.MkdirAll(filepath.Join(to, sub), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := runOf("maildir", d.Path, to, cmdline.NewStreams("lektor-pages", strings.NewReader(""), io.Discard, io.Discard), nil); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("%v: %v", other, err)
		}
	}
}
