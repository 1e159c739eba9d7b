package sharer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// publishedText returns the text of all documents that a machine has published.
func (m *machine) publishedText(target string) string {
	m.t.Helper()
	var out strings.Builder
	for _, name := range documents {
		data, err := os.ReadFile(filepath.Join(target, m.endpoint(), name))
		if err != nil {
			m.t.Fatal(err)
		}
		out.Write(data)
	}
	return out.String()
}

// If a feed becomes private, the next sync removes its item, conflicts, marks and folders
// from all documents, and their until dates grow. The set keeps its items, and they are
// published again when the feed is shared again.
func TestFeedMadePrivateIsWithdrawn(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	for _, m := range all {
		m.subscribe(1, "Secret folder/Within")
		m.subscribe(2, "Open folder")
		for f := range 3 {
			for n := range 5 {
				if f > 0 {
					m.deliver(f, n)
				}
			}
		}
	}
	a.mark(1, 0, "F", "")
	a.mark(2, 0, "F", "")
	rounds(2, a, b)
	// Make a conflict, and a mark that is newer than the complete document.
	secret := "src/" + testdir.Hash(feedURL(1))
	a.write(secret+"/etc/view/alias", "Secret alias\n")
	b.write(secret+"/etc/view/alias", "Another secret\n")
	a.mark(1, 1, "S", "")
	rounds(2, a, b)
	if s := a.publishedText(target); !strings.Contains(s, "feed1.example") || !strings.Contains(s, "Another secret") || !strings.Contains(s, "Entry 1 of 1") {
		t.Fatalf("before: %s", s)
	}
	until := func(name string) time.Time { return a.published(target, name).Sharing.Until }
	before := map[string]time.Time{}
	for _, name := range documents {
		before[name] = until(name)
	}
	for _, file := range []string{"etc/share/never", "etc/fetch/headers", "etc/fetch/private"} {
		a.write(secret+"/"+file, "Cookie: x\n")
		a.sync()
		s := a.publishedText(target)
		for _, word := range []string{"feed1", "ecret", "Within", testdir.Hash(feedURL(1)), "of 1<"} {
			if strings.Contains(s, word) {
				t.Errorf("%s: the documents have %q: %s", file, word, s)
			}
		}
		if !strings.Contains(s, "feed2.example") || !strings.Contains(s, "Open folder") || !strings.Contains(s, "Entry 0 of 2") {
			t.Errorf("%s: the other feed is gone: %s", file, s)
		}
		for _, name := range documents {
			if !until(name).After(before[name]) {
				t.Errorf("%s: %s: until is %v, before %v", file, name, until(name), before[name])
			}
			before[name] = until(name)
		}
		if err := Status(t.Context(), StatusOptions{Common: a.common()}, a.streams()); err != nil || !strings.Contains(a.err.String(), "; 1 peer still publishes it") {
			t.Errorf("%v, %s", err, &a.err)
		}
		// The peer's further edits are merged, but neither applied nor published.
		b.mark(1, 2, "F", "")
		rounds(1, b, a)
		if a.has(1, 2, 'F') || strings.Contains(a.publishedText(target), "feed1") || !strings.Contains(a.set(), ":0000000100000002:F") {
			t.Errorf("%s: %s\n%s", file, a.state(), a.set())
		}
		if !strings.Contains(b.state(), feedURL(1)) || !b.has(1, 0, 'F') {
			t.Errorf("%s: the other machine lost it: %s", file, b.state())
		}
		if err := os.Remove(filepath.Join(a.Path, secret, file)); err != nil {
			t.Fatal(err)
		}
		rounds(2, a, b)
		if s := a.publishedText(target); !strings.Contains(s, "feed1.example") || !strings.Contains(s, "Entry 1 of 1") {
			t.Errorf("%s: shared again: %s", file, s)
		}
		same(t, a, b)
		b.mark(1, 2, "", "F")
		rounds(2, b, a)
	}
}

// After a subscription has ended, its marks are published without title and link.
func TestMarksOfAnEndedSubscription(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 3, all...)
	subscribeAll(2, 3, all...)
	a.mark(1, 0, "F", "")
	a.mark(2, 0, "F", "")
	rounds(2, a, b)
	a.unsubscribe(1)
	rounds(2, a, b)
	for _, m := range all {
		s := m.publishedText(target)
		if strings.Contains(s, "feed1.example") || strings.Contains(s, "Entry 0 of 1") || !strings.Contains(s, ":0000000100000000:F") || !strings.Contains(s, "Entry 0 of 2") {
			t.Errorf("%s publishes %s", m.name, s)
		}
		if c := m.conflicts(); c != "" {
			t.Errorf("conflicts: %s", c)
		}
	}
	a.sync()
	if !strings.Contains(a.err.String(), "1 peer read\n") {
		t.Errorf("%s", &a.err)
	}
}

// A missing entry counts as read only if it is missing from every directory. An entry that a
// fetcher is replacing does not count, nor any entry of a feed that a fetcher has locked.
func TestReplacedEntryIsNotRead(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 3, all...)
	rounds(2, a, b)
	hash := testdir.Hash(feedURL(1))
	name := "1503674300.M1P1Q1I0000000100000000.a"
	from := filepath.Join(a.Path, "new", hash, name)
	move := func(to string) {
		t.Helper()
		to = filepath.Join(a.Path, to)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.Rename(from, to)); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	read := func(want bool, what string) {
		t.Helper()
		rounds(1, a, b)
		if got := strings.Contains(a.set(), ":0000000100000000:S") || b.has(1, 0, 'S'); got != want {
			t.Errorf("%s: read is %v", what, got)
		}
	}
	move("tmp/" + hash + "/" + name)
	read(false, "staged")
	move("tmp/" + hash + "/1503674399.M1P1Q1I0000000100000000.a;replaces")
	read(false, "about to be replaced")
	move("tmp/" + hash + "/" + name + ";gone,R")
	w, err := feedfiles.NewWriter(a.dir(), commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tx, err := w.Begin(hash)
	if err != nil {
		t.Fatal(err)
	}
	read(false, "busy")
	tx.Close()
	read(true, "deleted")
}

// An item with the greatest version cannot be edited in the set. An edit of it stays on the
// user's machine, with one warning; other edits are shared.
func TestGreatestVersion(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 3, all...)
	subscribeAll(2, 3, all...)
	rounds(2, a, b)
	evil := filepath.Join(target, "evil")
	hash := testdir.Hash(feedURL(1))
	item := func(element, id, rest string) string {
		return fmt.Sprintf(`<%s><sx:sync id="%s" version="9007199254740992"><sx:history when="Thu, 01 Jan 2026 00:00:00 GMT" by="evil"/></sx:sync></%s>`, element+rest, id, element)
	}
	if err := errors.Join(os.MkdirAll(evil, 0o777),
		os.WriteFile(filepath.Join(evil, subsFile), []byte(`<opml xmlns:sx="`+feedsync.Namespace+`"><body>`+item("outline", hash, ` text="Evil" title="Feed 1" xmlUrl="`+feedURL(1)+`"`)+`</body></opml>`), 0o666),
		os.WriteFile(filepath.Join(evil, completeFile), []byte(`<rss xmlns:sx="`+feedsync.Namespace+`"><channel>`+item("item", hash+":0000000100000000:F", "")+`</channel></rss>`), 0o666)); err != nil {
		t.Fatal(err)
	}
	rounds(2, a, b)
	if !a.has(1, 0, 'F') || !strings.Contains(a.state(), feedURL(1)+" Evil ") {
		t.Fatalf("%s", a.state())
	}
	a.mark(1, 0, "", "F")
	a.write("src/"+hash+"/etc/view/alias", "Mine\n")
	a.mark(2, 1, "F", "")
	a.sync()
	if s := a.err.String(); strings.Count(s, "stays on this machine") != 2 {
		t.Errorf("%s", s)
	}
	for range 3 {
		rounds(1, b, a)
		if s := a.err.String(); strings.Contains(s, "stays on") {
			t.Errorf("the warning is repeated: %s", s)
		}
	}
	if a.has(1, 0, 'F') || !strings.Contains(a.state(), " Mine ") || !b.has(1, 0, 'F') || !b.has(2, 1, 'F') {
		t.Errorf("a has\n%s\nb has\n%s", a.state(), b.state())
	}
	// Setting the flag again is not an edit. After unsubscribing here, the machine does not
	// subscribe again.
	a.mark(1, 0, "F", "")
	a.unsubscribe(1)
	rounds(2, a, b)
	if strings.Contains(a.state(), feedURL(1)) || !strings.Contains(b.state(), feedURL(1)) {
		t.Errorf("a has\n%s\nb has\n%s", a.state(), b.state())
	}
}

// A URL, a title or a peer's feed that exceeds the limits is skipped; the sync goes on.
func TestTooLong(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 1, all...)
	long := feedURL(9) + strings.Repeat("x", maxURL)
	if _, err := a.Feed(long, "Long", "etc/fetch/url="+long); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Entry(feedURL(1), "cur", "1503674340.M1P1Q1I00000000000000aa.h;2,F", "title="+strings.Repeat("<", 1<<16), "id="+strings.Repeat("y", 1<<16)); err != nil {
		t.Fatal(err)
	}
	peer := filepath.Join(target, "peer")
	url := feedURL(8) + strings.Repeat("z", maxURL)
	if err := errors.Join(os.MkdirAll(peer, 0o777), os.WriteFile(filepath.Join(peer, subsFile), []byte(`<opml xmlns:sx="`+feedsync.Namespace+`"><body><outline title="t" text="t" xmlUrl="`+url+`"><sx:sync id="`+testdir.Hash(url)+`" version="1"><sx:history by="peer"/></sx:sync></outline></body></opml>`), 0o666)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rounds(1, a, b)
		if !strings.Contains(b.err.String(), "its URL is longer than 8 KiB") {
			t.Errorf("%s", &b.err)
		}
	}
	if s := a.publishedText(target); strings.Contains(s, "Long") || !strings.Contains(s, "00000000000000aa:F") || len(s) > 40_000 {
		t.Errorf("%d bytes: %.3000s", len(s), s)
	}
	if strings.Contains(b.state(), "xxx") || strings.Contains(b.state(), "zzz") {
		t.Errorf("%s", b.state())
	}
}

// A sync prints its changes. Status shows when a peer wrote, not only when it was read. A
// sync that would trash most entries needs --yes.
func TestSyncSummary(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 120, all...)
	a.subscribe(2)
	rounds(2, a, b)
	wrote := a.clock.now
	for n := range 5 {
		a.mark(1, n, "F", "")
	}
	a.subscribe(3)
	a.unsubscribe(2)
	rounds(1, a, b)
	if s := b.err.String(); !strings.Contains(s, "1 peer read, marked 5, subscribed to 1, unsubscribed from 1") {
		t.Errorf("%s", s)
	}
	a.clock.now = a.clock.now.Add(30 * 24 * time.Hour)
	var out bytes.Buffer
	if err := Peer(t.Context(), PeerOptions{Common: b.common(), Print: cmdline.PrinterOptions{Format: "wrote,silent"}}, cmdline.NewStreams("lektor-share", nil, &out, &b.err)); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, wrote.Format("2006-01-02")) || !strings.Contains(s, "720h") {
		t.Errorf("%q", s)
	}
	for n := range 110 {
		a.mark(1, n, "T", "")
	}
	a.sync()
	err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams())
	if err == nil || err.Error() != "refused to trash 110 of 120 entries" || b.has(1, 0, 'T') {
		t.Errorf("%v", err)
	}
	if err := Sync(t.Context(), SyncOptions{Common: b.common(), Yes: true}, b.streams()); err != nil || !b.has(1, 0, 'T') {
		t.Errorf("%v", err)
	}
	same(t, a, b)
}

// Feeds with private addresses are subscribed to only if the user allows the network.
func TestPrivateAddressesOfPeers(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	for _, url := range []string{"http://192.168.1.1/feed", "http://localhost:8080/", "http://[::1]/x", "http://10.1.2.3/"} {
		if _, err := a.Feed(url, "Private", "etc/fetch/url="+url); err != nil {
			t.Fatal(err)
		}
	}
	rounds(1, a, b)
	if s := b.state(); s != "" || strings.Count(b.err.String(), "is in a private network; to allow it: lektor-share sync --allow") != 4 {
		t.Errorf("%s\n%s", s, &b.err)
	}
	c := b.common()
	c.Fetch.AllowPrivate = prefixes(t, "192.168.0.0/16", "::1/128")
	if err := Sync(t.Context(), SyncOptions{Common: c}, b.streams()); err != nil {
		t.Fatal(err)
	}
	if s := b.state(); strings.Count(s, "http") != 2 || !strings.Contains(s, "192.168.1.1") || !strings.Contains(s, "[::1]") {
		t.Errorf("%s", s)
	}
}

// Numbers and full-width digits, which resolvers and clients take for addresses, do not pass
// for names.
func TestHostsThatAreNumbers(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	refused := []string{"http://127.1/x", "http://2130706433/x", "http://0x7f.1/x", "http://0x7f000001:80/x", "http://017700000001./x", "http://\uff11\uff10.0.0.1/x", "http://10\u30020\u30020\u30021/x"}
	taken := []string{"http://1.example/x", "http://93.184.216.34/x", "http://f\u00fc\u00df.example/x"}
	for _, url := range append(slices.Clone(refused), taken...) {
		if _, err := a.Feed(url, "A feed", "etc/fetch/url="+url); err != nil {
			t.Fatal(err)
		}
	}
	rounds(1, a, b)
	for _, url := range refused {
		if strings.Contains(b.state(), url) {
			t.Errorf("subscribed to %s", url)
		}
	}
	for _, url := range taken {
		if !strings.Contains(b.state(), url) {
			t.Errorf("not subscribed to %s: %s", url, &b.err)
		}
	}
}

// If this endpoint's directory is a symbolic link, nothing is written through it.
func TestLinkInTheTarget(t *testing.T) {
	all, target := machines(t, "a")
	a := all[0]
	a.subscribe(1)
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, ".state.rss1234567890123456"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(target, 0o777), os.Symlink(elsewhere, filepath.Join(target, a.endpoint()))); err != nil {
		t.Fatal(err)
	}
	err := Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams())
	if err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("%v", err)
	}
	if names, _ := os.ReadDir(elsewhere); len(names) != 1 {
		t.Errorf("%v", names)
	}
}

// Conflicts are settled all at once, or those that standard input lists.
func TestResolveMany(t *testing.T) {
	for _, all := range []bool{true, false} {
		both, _ := machines(t, "a b")
		a, b := both[0], both[1]
		for n := range 3 {
			a.subscribe(n)
			b.subscribe(n)
		}
		rounds(2, a, b)
		for _, m := range both {
			for n := range 3 {
				m.write("src/"+testdir.Hash(feedURL(n))+"/etc/view/alias", "Of "+m.name+"\n")
			}
		}
		rounds(2, a, b)
		list := a.conflicts()
		if strings.Count(list, "\n") != 3 {
			t.Fatalf("%s", list)
		}
		o := ResolveOptions{Common: a.common(), Which: "theirs", All: all}
		in, out := io.Pipe()
		var listing sync.WaitGroup
		if !all {
			o.Items = []string{"-"}
			// conflicts writes into the pipe when resolve has begun.
			listing.Go(func() {
				s := cmdline.NewStreams("lektor-share", nil, out, &a.err)
				out.CloseWithError(Conflicts(t.Context(), ConflictsOptions{Common: a.common()}, s))
			})
		}
		if err := Resolve(t.Context(), o, cmdline.NewStreams("lektor-share", in, &bytes.Buffer{}, &bytes.Buffer{})); err != nil {
			t.Fatal(err)
		}
		in.Close()
		listing.Wait()
		rounds(2, a, b)
		same(t, a, b)
		if c := a.conflicts() + b.conflicts(); c != "" {
			t.Errorf("all=%v: %s", all, c)
		}
	}
}
