package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is in a file that somebody wrote is read as a whole subscription or as none, and
// is the same when it was written again.
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
		once := s.encode()
		if err := os.WriteFile(path, once, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := st.read(hash, key)
		if err == nil && string(again.encode()) != string(once) {
			t.Fatalf("%q becomes %q", once, again.encode())
		}
	})
}

// The file of a round stands for the subscribers that it names, and for no file elsewhere.
func FuzzPending(f *testing.F) {
	f.Add("http://a.example/\n" + strings.Repeat("a", 40) + "\n\n")
	f.Add("http://a.example/\n" + strings.Repeat("a", 40) + "\n\n" + strings.Repeat("a", 40) + "\tfailed\nagain\t2027-01-15T08:30:10Z\n" + strings.Repeat("a", 40) + "\tnewer\n")
	f.Add("http://a.example/\n" + strings.Repeat("a", 40) + "\n\n" + strings.Repeat("a", 40) + "\t3\t2027-01-15T08:30:10Z\n" + strings.Repeat("a", 40) + "\t9\t\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, strings.Repeat("a", 40)+".1-1")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1_800_000_000, 0)
		r, err := readRound(path, now)
		if err != nil {
			return
		}
		for k := range r.left {
			if len(k) != 40 || strings.ContainsAny(k, "/.") || !strings.Contains(text, k) {
				t.Fatalf("%q", k)
			}
		}
		// Whatever is in it, each pass takes a step of a ladder, and ladders end.
		for n := 0; len(r.left) > 0; n++ {
			p, next := r.begin(now)
			if p == nil {
				now = next
				continue
			}
			for _, k := range p.keys {
				if !p.take(k, now) {
					t.Fatalf("%s is not taken", k)
				}
				p.failed(k, now, time.Time{}, false)
			}
			p.rest(now)
			if n > len(r.left)+len(text)+len(ladder) {
				t.Fatal("there is no end of it")
			}
		}
	})
}
