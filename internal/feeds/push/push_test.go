package push

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

func openFeed(t *testing.T, files ...string) (*lektordir.Dir, string) {
	t.Helper()
	td := testdir.New(t)
	hash, err := td.Feed("http://a.example/", "A", append(files, "etc/link=http://a.example/")...)
	if err != nil {
		t.Fatal(err)
	}
	d, err := lektordir.Open(td.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, hash
}

// Read returns what Write has written.
func TestPushRoundTrip(t *testing.T) {
	d, hash := openFeed(t)
	p := Of(
		[]feedconv.Cloud{{Domain: "c.example", Port: 5337, Path: "/please\tNotify\n", Protocol: "http-post"}, {Domain: "d.example", Path: "/RPC2", RegisterProcedure: "x", Protocol: "xml-rpc"}},
		[]feedconv.Link{{Rel: "HUB", URL: "http://h.example/\x00"}, {Rel: "alternate", URL: "http://a.example/"}, {Rel: "self", URL: "http://a.example/feed"}, {Rel: "self", URL: "http://a.example/2"}},
	)
	if err := p.Write(d, hash); err != nil {
		t.Fatal(err)
	}
	want := p
	want.Clouds[0].Path = "/please Notify"
	got, err := Read(d, hash)
	if err != nil || !reflect.DeepEqual(got, want) || got.Hubs[0] != "http://h.example/" {
		t.Errorf("%+v, %v", got, err)
	}
	// Unchanged files are not written, and files without content are removed.
	rule := stamp.Rule{Step: time.Nanosecond}
	look := func() []stamp.Stamp { return rule.Begin(unix.AT_FDCWD, nil, Paths(d, hash)...).End() }
	before, stamps := modified(t, feedfiles.Area(d, hash, "push")), look()
	if err := p.Write(d, hash); err != nil || !reflect.DeepEqual(modified(t, feedfiles.Area(d, hash, "push")), before) || !slices.Equal(look(), stamps) {
		t.Error("unchanged files were written:", err)
	}
	if err := (Offers{Hubs: p.Hubs}).Write(d, hash); err != nil {
		t.Fatal(err)
	}
	if left := modified(t, feedfiles.Area(d, hash, "push")); len(left) != 1 || left["hub"].IsZero() {
		t.Errorf("%v", left)
	}
	if slices.Equal(look(), stamps) {
		t.Error("the stamps are the same")
	}
}

func modified(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	ents, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ents {
		fi, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = fi.ModTime()
	}
	return out
}

func TestPushThatIsDamaged(t *testing.T) {
	d, hash := openFeed(t, "etc/push/cloud=x\na.example\t5337\t/p\t\thttp-post", "etc/push/hub="+strings.Repeat("http://h.example/\n", 20), "etc/push/self=")
	p, err := Read(d, hash)
	if err == nil || !strings.Contains(err.Error(), "5 fields, not 1") {
		t.Error(err)
	}
	if len(p.Clouds) != 1 || p.Clouds[0] != (feedconv.Cloud{Domain: "a.example", Port: 5337, Path: "/p", Protocol: "http-post"}) || len(p.Hubs) != maxPush || p.Self != nil {
		t.Errorf("%+v", p)
	}
	if p, err := Read(d, "0"); err != nil || !reflect.DeepEqual(p, Offers{}) {
		t.Errorf("a feed that does not exist: %+v, %v", p, err)
	}
}

func TestPushThroughALinkIsNotWritten(t *testing.T) {
	d, hash := openFeed(t)
	outside := t.TempDir()
	for _, area := range []string{"push", "cloudd"} {
		if err := os.Symlink(outside, feedfiles.Area(d, hash, area)); err != nil {
			t.Fatal(err)
		}
	}
	if (Offers{Hubs: []string{"x"}}).Write(d, hash) == nil || (Registration{Hub: "x"}).Write(d, hash) == nil {
		t.Error("no error")
	}
	if ents, _ := os.ReadDir(outside); len(ents) != 0 {
		t.Errorf("written: %v", ents)
	}
}

func aRegistration(token string) Registration {
	now := time.Unix(1_800_000_000, 0).UTC()
	return Registration{
		Hub: "http://one.example/", Protocol: "http-post", Topic: "http://a.example/", Callback: "http://me.example/" + strings.Repeat(token, TokenLen),
		Secret: "s", Signature: "sha256", State: "registered", Since: now, Asked: now, Expires: now.Add(25 * time.Hour), Next: now.Add(24 * time.Hour), Notified: now, Failures: 3, Error: "e",
	}
}

// ReadRegistration returns what Write has written. Only the owner can read callback and secret. Write does
// not create a purged feed again.
func TestRegistrationRoundTrip(t *testing.T) {
	d, hash := openFeed(t)
	want := aRegistration("a")
	for range 2 {
		if err := want.Write(d, hash); err != nil {
			t.Fatal(err)
		}
		if got := ReadRegistration(d, hash); got != want {
			t.Errorf("%+v", got)
		}
		want.Error, want.Failures, want.Expires = "", 0, time.Time{}
	}
	files := modified(t, feedfiles.Area(d, hash, "cloudd"))
	if len(files) != len(want.files())-3 {
		t.Errorf("%d files", len(files))
	}
	for name := range files {
		fi, err := os.Stat(filepath.Join(feedfiles.Area(d, hash, "cloudd"), name))
		if secret := name == "callback" || name == "secret"; err != nil || secret != (fi.Mode().Perm() == 0o600) {
			t.Errorf("%s: %v, %v", name, fi.Mode(), err)
		}
	}
	if err := os.RemoveAll(d.Join("src", hash)); err != nil {
		t.Fatal(err)
	}
	if err := aRegistration("b").Write(d, hash); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.Join("src", hash)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the purged feed exists again")
	}
}

// After a write that failed half-way, the registration has no time of renewal, and the next write
// completes it.
func TestRegistrationAfterAWriteThatFailed(t *testing.T) {
	d, hash := openFeed(t)
	one := aRegistration("a")
	two := aRegistration("b")
	two.Hub, two.Topic = "http://two.example/", "http://b.example/"
	if err := one.Write(d, hash); err != nil {
		t.Fatal(err)
	}
	topic := filepath.Join(feedfiles.Area(d, hash, "cloudd"), "topic")
	if err := errors.Join(os.Remove(topic), os.MkdirAll(filepath.Join(topic, "x"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := two.Write(d, hash); err == nil {
		t.Fatal("Write succeeds, though topic is a directory")
	}
	if r := ReadRegistration(d, hash); !r.Next.IsZero() {
		t.Errorf("the time of renewal is still valid: %+v", r)
	}
	if err := os.RemoveAll(topic); err != nil {
		t.Fatal(err)
	}
	if err := one.Write(d, hash); err != nil {
		t.Fatal(err)
	}
	if r := ReadRegistration(d, hash); r != one {
		t.Errorf("%+v, want %+v", r, one)
	}
}

// TestRegistrationAfterAPowerCut: a registration whose secret is lost is none, since anybody's content
// would be accepted.
func TestRegistrationAfterAPowerCut(t *testing.T) {
	for _, name := range []string{"callback", "secret", "hub", "protocol"} {
		d, hash := openFeed(t)
		if err := aRegistration("a").Write(d, hash); err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{"", "\x00\x00\x00"} {
			testdir.Write(t, feedfiles.Area(d, hash, "cloudd"), name, left)
			if r := ReadRegistration(d, hash); r != (Registration{}) {
				t.Errorf("%s is %q: %+v", name, left, r)
			}
		}
	}
}
