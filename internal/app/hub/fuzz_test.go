package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/values"
)

// Any file is read as a complete subscription, or reading fails. A subscription that was
// read stays the same when it is written and read again.
func FuzzState(f *testing.F) {
	f.Add("callback\tc\nprotocol\tp\nfeed\tf\n")
	st, err := openStates(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	hash, key := strings.Repeat("a", 40), strings.Repeat("b", 40)
	if err := os.MkdirAll(st.subs(hash), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(st.subs(hash), key)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := st.read(hash, key)
		if err != nil {
			return
		}
		s.wants(time.Unix(0, 0))
		once := s.text(values.New('\t'))
		if err := os.WriteFile(path, once, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := st.read(hash, key)
		if err == nil && string(again.text(values.New('\t'))) != string(once) {
			t.Fatalf("%q becomes %q", once, again.text(values.New('\t')))
		}
	})
}

// Lines of the log add jobs for the subscribers that they name, and for no others.
func FuzzPending(f *testing.F) {
	hash, key := strings.Repeat("a", 40), strings.Repeat("b", 40)
	f.Add(hash + "\t" + key + "\t0\t\n")
	f.Add(hash + "\t" + key + "\t1\t2027-01-15T08:30:10Z\n" + hash + "\t" + key + "\n")
	f.Add(hash + "\t" + key + "\t3\t2027-01-15T08:30:10Z\n" + hash + "\t" + key + "\t9\t\n")
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Unix(1_800_000_000, 0)
		j, err := openJobs(t.TempDir(), now)
		if err != nil {
			t.Fatal(err)
		}
		defer j.close()
		j.resume(text, now)
		for _, f := range j.feeds {
			for k := range f.pending {
				if len(k) != 40 || strings.ContainsAny(k, "/.") || !strings.Contains(text, k) {
					t.Fatalf("%q", k)
				}
			}
		}
		// With any file, each pass takes a step of a ladder, and ladders end.
		for n := 0; len(j.feeds) > 0; n++ {
			w := j.begin(now, time.Hour, nil)
			passes, next := w.rounds, w.next
			if len(passes) == 0 {
				now = next
				continue
			}
			for _, k := range passes[0].keys {
				if !j.take(passes[0], k, now) {
					t.Fatalf("take refuses %s", k)
				}
				j.failed(passes[0], k, now, 0, false)
			}
			j.end(passes[0], now)
			if n > len(text)+len(retrySteps.Steps) {
				t.Fatal("the ladders do not end")
			}
		}
	})
}
