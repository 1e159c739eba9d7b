package subscriptions

import (
	"errors"
	"io/fs"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

func TestWithheld(t *testing.T) {
	for _, c := range []struct {
		id, file, text string
		why            string // "" if the feed may be published
	}{
		{id: "http://a.example/feed"},
		{id: "http://ann@a.example/feed", why: "password"},
		{id: "http://ann:secret@a.example/feed", why: "password"},
		{id: "http://ann:sec%zzret@a.example/feed", why: "password"},
		{id: "exec:date", why: "command"},
		{id: "FILE:/tmp/x", why: "file"},
		{id: "http://a.example/feed", file: "url", text: "http://ann:secret@a.example/feed\n", why: "password"},
		{id: "http://a.example/feed", file: "url", text: "exec:cat /etc/passwd\n", why: "command"},
		{id: "http://a.example/feed", file: "headers", text: "Authorization: Bearer x\n", why: "headers"},
		{id: "http://a.example/feed", file: "headers"},
		{id: "http://a.example/feed", file: "filter", text: "cat\n", why: "filter"},
		{id: "http://a.example/feed", file: "private", why: "marked private"},
		{id: "http://a.example/feed", file: "private", text: "yes\n", why: "marked private"},
		{id: "http://a.example/feed", file: "private", text: "no\n"},
		{id: "http://a.example/feed", file: "interval", text: "2h\n"},
	} {
		d, w := setup(t)
		s := &Subscription{ID: c.id, URL: "http://a.example/feed"}
		if _, err := Add(w, d, s, AddOptions{}); err != nil {
			t.Fatal(err)
		}
		if c.file != "" {
			testdir.Write(t, feedfiles.FetchArea(d, s.Hash), c.file, c.text)
		}
		why, _ := settings.Withheld(d, s.Hash)
		ok := why == ""
		if ok != (c.why == "") || !strings.Contains(why, c.why) || ok && why != "" {
			t.Errorf("%+v: %v, the feed %q", c, ok, why)
		}
		// A feed is withheld if one of its files cannot be read.
		for _, name := range []string{"private", "headers", "filter", "url"} {
			path := filepath.Join(feedfiles.FetchArea(d, s.Hash), name)
			if err := errors.Join(os.RemoveAll(path), syscall.Mkfifo(path, 0o666)); err != nil {
				t.Fatal(err)
			}
			if why, _ := settings.Withheld(d, s.Hash); why == "" {
				t.Errorf("not withheld, though %s is a pipe", name)
			}
			os.Remove(path)
		}
	}
}

func TestPrivate(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "http://a.example/feed", Private: true}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	private := func(want bool, value string) {
		t.Helper()
		got, err := Read(d, s.Hash)
		shown, err2 := settings.Get(d, s.Hash, "private")
		if err := errors.Join(err, err2); err != nil || got.Private != want || shown != value {
			t.Errorf("%v, %q, %v", got.Private, shown, err)
		}
	}
	private(true, "yes")
	if err := Unset(w, d, s.Hash, "private", nil); err != nil {
		t.Error(err)
	}
	private(false, "")
	for _, v := range []string{"no", "yes"} {
		if err := Set(w, d, s.Hash, "private", v, nil); err != nil {
			t.Error(err)
		}
		private(v == "yes", v)
	}
	if err := Set(w, d, s.Hash, "private", "maybe", nil); err == nil {
		t.Error("private can be set to maybe")
	}
}

// Only the owner can read files with a password, at every step.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	const id, moved = "http://ann:secret@a.example/feed", "https://ann:secret@a.example/new"
	for _, unsynced := range []bool{false, true} {
		d, w := setup(t)
		modes := func(step string, mode os.FileMode) {
			t.Helper()
			for _, path := range []string{"id", feedfiles.PathURL, "etc/fetch/" + feedfiles.FileFrom} {
				fi, err := os.Stat(d.Join("src", lektordir.FeedHash(id), path))
				if err == nil && fi.Mode().Perm() != mode {
					t.Errorf("%s: %s has the mode %o", step, path, fi.Mode().Perm())
				} else if err != nil && (path != "etc/fetch/"+feedfiles.FileFrom || step == "saved") {
					t.Errorf("%s: %v", step, err)
				}
			}
		}
		s := &Subscription{ID: id}
		if _, err := Add(w, d, s, AddOptions{Unsynced: unsynced}); err != nil {
			t.Fatal(err)
		}
		if unsynced {
			if err := Finish(w, d, []*Subscription{s}); err != nil {
				t.Fatal(err)
			}
		}
		modes("added", 0o600)
		visited := func() {
			st := load(t, d, s.Hash)
			st.Succeeded(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), &httpmsg.Response{Status: http.StatusOK, Header: textproto.MIMEHeader{}, ETag: `"1"`, Body: []byte("<rss/>"), FinalURL: "http://a.example/feed"}, schedule.Hints{})
			if err := st.Save(); err != nil {
				t.Fatal(err)
			}
		}
		visited()
		modes("saved", 0o600)
		// An older version, or an editor, may have left them open to others.
		for _, path := range []string{feedfiles.PathURL, "etc/fetch/" + feedfiles.FileFrom} {
			if err := os.Chmod(d.Join("src", s.Hash, path), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := Set(w, d, s.Hash, "url", moved, nil); err != nil {
			t.Fatal(err)
		}
		visited()
		modes("saved", 0o600)
		if left, _ := filepath.Glob(d.Join("src", s.Hash, "etc/fetch/.*")); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
	d, w := setup(t)
	s := &Subscription{ID: "http://a.example/feed"}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"id", feedfiles.PathURL} {
		if fi, err := os.Stat(d.Join("src", s.Hash, path)); err != nil || fi.Mode().Perm() != 0o644 {
			t.Error(path, fi, err)
		}
	}
	if err := feedfiles.HideID(d, s.Hash, id); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(d.Join("src", s.Hash, "id")); err != nil || fi.Mode().Perm() != 0o600 || read(t, d, "src/"+s.Hash+"/id") != s.ID+"\n" {
		t.Error(fi, err)
	}
}

// Only the owner can read files with a command. These include src/$feed/name, which has the command until
// the first document is fetched.
func TestCommandsAreTheUsersOwn(t *testing.T) {
	for _, unsynced := range []bool{false, true} {
		d, w := setup(t)
		s := &Subscription{ID: "exec:curl -H 'Token: s3cr3t' http://a.example/"}
		if _, err := Add(w, d, s, AddOptions{Unsynced: unsynced}); err != nil {
			t.Fatal(err)
		}
		seen := 0
		err := filepath.WalkDir(d.Join("src", s.Hash), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(data), "s3cr3t") {
				return err
			}
			seen++
			if fi, err := e.Info(); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("unsynced %t: %s has the mode %v", unsynced, path, fi.Mode())
			}
			return nil
		})
		if err != nil || seen < 2 {
			t.Errorf("%d files, %v", seen, err)
		}
	}
}

func TestIntervals(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "http://a.example/feed"}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set, says  string // the value to set, and the error, or "" if it can be set
		forced     bool   // it can be restored
		file, kept string // the text of an edited file, and the interval that it means
	}{
		{set: "3", says: "is it 3m, 3h or 3d?", file: "3", kept: "1m0s"},
		{set: "3600", says: "no unit", file: "3600", kept: "1h0m0s"},
		{set: "30s", says: "too short", forced: true, file: "30s", kept: "30s"},
		{set: "60s", file: "60s", kept: "1m0s"},
		{set: "1d12h", file: "1d12h", kept: "36h0m0s"},
		{set: "never", says: "not an interval", file: "never", kept: "1h0m0s"},
	} {
		err := Set(w, d, s.Hash, "interval", c.set, nil)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.set, err, c.says)
		}
		if err := settings.Check("interval", c.set); errors.As(err, new(*settings.ShortIntervalError)) != c.forced {
			t.Errorf("%s by force: %v", c.set, err)
		}
		if err := Restore(w, d, s.Hash, "interval", c.set, nil); c.forced && err != nil {
			t.Errorf("%s by force: %v", c.set, err)
		}
		testdir.Write(t, feedfiles.FetchArea(d, s.Hash), feedfiles.FileInterval, c.file+"\n")
		if got := load(t, d, s.Hash).Settings.Interval().String(); got != c.kept {
			t.Errorf("a file with %s means %s, want %s", c.file, got, c.kept)
		}
	}
}

func load(t *testing.T, d *lektordir.Dir, hash string) *schedule.State {
	t.Helper()
	st, err := schedule.Load(d, hash)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
