package pages

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cmdline"
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
		if err := Mbox(t.Context(), MboxOptions{Common: c, To: "-"}, s); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(to, name+".mbox"))
		if err := Mbox(t.Context(), MboxOptions{Common: c, To: filepath.Join(to, name+".mbox")}, s); err != nil {
			t.Fatal(err)
		}
		for _, mail := range []string{"", "kim@example.com"} {
			if err := Digest(t.Context(), DigestOptions{Common: c, Entries: paths, Lines: 3, Images: true, Mail: mail}, s); err != nil {
				t.Fatal(err)
			}
		}
		box, err := os.ReadFile(filepath.Join(to, name+".mbox"))
		if err != nil {
			t.Fatal(err)
		}
		links(t, filepath.Join(to, name))
		return map[string]string{
			"site": tree(t, filepath.Join(to, name)), "site of 20": tree(t, filepath.Join(to, name+" of 20")),
			"printed": out.String(), "mailbox": string(box), "messages": messages.String(),
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
