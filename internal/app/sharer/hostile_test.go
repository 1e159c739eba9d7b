package sharer

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// A peer writes a control character into one field of its documents (LEKTOR_SHARE_RUNS), or into all
// that have text. Two syncs later the store can be
// read, all its lines are those of its form, no file of the lektor-dir has an alias, a name or a
// category with a line break, and the marks of other peers still arrive.
func TestControlsInEveryField(t *testing.T) {
	feed, mark := testdir.Hash(feedURL(7)), testdir.Hash(feedURL(1))+":0000000100000000:F"
	fields := map[string]string{
		"text": "Seven", "title": "Feed 7", "xmlUrl": feedURL(7), "htmlUrl": feedURL(7), "category": "/Other", "lektor:id": feedURL(7), "lektor:parent": "folder:one",
		"id": feed, "by": "z", "when": "Sat, 03 Jan 2026 00:00:00 GMT", "conflict": "Lost", "conflict parent": "folder:one",
		"folder": "News", "folder id": "folder:one", "foreign": "text", "mark": mark, "mark title": "Title", "mark link": feedURL(1) + "1", "mark guid": mark,
		"mark category": "flagged", "lektor:feed": feedURL(1), "lektor:entry": feedURL(1) + "1", "lektor:identity": "00000001000000ff", "mark by": "z",
		"doc title": "Theirs", "link": "../z/state.rss", "until": "Sat, 03 Jan 2026 00:00:00 GMT",
	}
	// An item with a control in one of these is skipped.
	ids := []string{"xmlUrl", "lektor:id", "id", "by", "when", "folder id", "mark", "mark by", "until"}
	names := slices.Collect(maps.Keys(fields))
	if os.Getenv("LEKTOR_SHARE_RUNS") == "" {
		names = []string{"all but ids"}
	}
	controls := map[string]string{"newline": "&#10;", "line of the store": "&#10;subscribed " + feed, "tab": "&#9;", "return": "&#13;", "backslash": `\n\`, "escape": "&#27;[2J", "NUL": "&#0;", "C1": "&#x9b;2J", "bidi": "&#x202e;", "separator": "&#x2028;"}
	for control, c := range controls {
		t.Run(control, func(t *testing.T) {
			t.Parallel()
			for _, field := range names {
				all, target := machines(t, "a b")
				a, b := all[0], all[1]
				subscribeAll(1, 2, all...)
				rounds(1, a, b)
				v := func(name string) string {
					if name == field || field == "all but ids" && !slices.Contains(ids, name) {
						return fields[name][:1] + c + fields[name][1:]
					}
					return fields[name]
				}
				evil := filepath.Join(target, "evil")
				write := func(name, text string) {
					if err := os.MkdirAll(evil, 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(evil, name), []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				const bindings = ` xmlns:sx="http://www.microsoft.com/schemas/rss/sse" xmlns:lektor="https://github.com/lektordir/lektor/share" xmlns:q="urn:q"`
				sharing := fmt.Sprintf(`<sx:sharing until="%s" version="0.91"><sx:related link="%s" type="aggregated"/></sx:sharing>`, v("until"), v("link"))
				history := fmt.Sprintf(`<sx:history by="%s" when="%s"/>`, v("by"), v("when"))
				write(subsFile, fmt.Sprintf(`<opml%s><head><title>%s</title>%s</head><body><outline text="%s"><sx:sync id="%s" version="1">%s</sx:sync></outline>`+
					`<outline text="%s" title="%s" xmlUrl="%s" htmlUrl="%s" category="%s" lektor:id="%s" lektor:parent="%s" q:x="%s"><sx:sync id="%s" version="2" conflict="true">%s`+
					`<sx:conflicts><sx:conflict by="%s" version="1" lektor:parent="%s"><outline text="%s" title="Feed 7" xmlUrl="%s"/></sx:conflict></sx:conflicts></sx:sync></outline></body></opml>`,
					bindings, v("doc title"), sharing, v("folder"), v("folder id"), history, v("text"), v("title"), v("xmlUrl"), v("htmlUrl"), v("category"), v("lektor:id"), v("lektor:parent"), v("foreign"),
					v("id"), history, v("by"), v("conflict parent"), v("conflict"), feedURL(7)))
				write(partialFile, fmt.Sprintf(`<rss version="2.0"%s><channel><title>%s</title>%s<item><title>%s</title><link>%s</link><guid>%s</guid><category>%s</category>`+
					`<lektor:feed>%s</lektor:feed><lektor:entry>%s</lektor:entry><lektor:identity>%s</lektor:identity><sx:sync id="%s" version="1"><sx:history by="%s" when="%s"/></sx:sync></item></channel></rss>`,
					bindings, v("doc title"), sharing, v("mark title"), v("mark link"), v("mark guid"), v("mark category"), v("lektor:feed"), v("lektor:entry"), v("lektor:identity"), v("mark"), v("mark by"), v("when")))
				for n := range 2 {
					a.mark(1, 1, "ab"[n:n+1], "")
					a.trySync() // 75 if the document is not well-formed
					if status, text := b.trySync(); status == 1 || strings.Contains(text, storeFile) || strings.ContainsAny(text, "\x1b\u009b\u202e") {
						t.Fatalf("%s: %d, %q", field, status, text)
					}
					if !b.has(1, 1, "ab"[n]) {
						t.Errorf("%s: the mark of another peer is missing", field)
					}
				}
				for _, name := range []string{"etc/view/alias", "name", "etc/link", "etc/categories", "etc/fetch/url", "id"} {
					data, err := os.ReadFile(filepath.Join(b.Path, "src", feed, name))
					if err == nil && bytes.ContainsAny(bytes.TrimSuffix(data, []byte("\n")), "\r\x00") || bytes.Count(data, []byte("\n")) > 1 && name != "etc/categories" {
						t.Errorf("%s: %s has %q", field, name, data)
					}
				}
				b.write("src/"+testdir.Hash(feedURL(1))+"/etc/view/alias", "Two\nsubscribed lines\n")
				b.trySync()
				items, conflicts := b.items(), b.conflicts() // the store is valid
				if len(items) == 0 || strings.ContainsAny(conflicts, "\x1b\u009b\u202e\r") {
					t.Errorf("%s: conflicts %q", field, conflicts)
				}
				var out bytes.Buffer
				for _, set := range []string{"subscriptions", "state"} {
					if err := Publish(t.Context(), PublishOptions{Common: b.common(), To: "-", Set: set}, cmdline.NewStreams("lektor-share", nil, &out, &b.err)); err != nil {
						t.Fatal(err)
					}
				}
				files, _ := filepath.Glob(filepath.Join(evil, "*"))
				for _, path := range files {
					_ = Merge(t.Context(), MergeOptions{Local: path, Incoming: path}, cmdline.NewStreams("lektor-share", nil, &out, &b.err))
				}
				if strings.ContainsAny(out.String(), "\x1b\u009b\u202e\u2028") {
					t.Errorf("%s: a document on standard output has the control", field)
				}
			}
		})
	}
}

// A peer's directory or document that is a link, for example to the documents of another circle, is
// not read. The user may name a link as the place of a peer.
func TestLinksOfPeers(t *testing.T) {
	other, _ := machines(t, "a b")
	other[0].subscribe(5)
	rounds(1, other[0])
	secret := filepath.Join(other[0].target(), other[0].endpoint())
	for _, link := range []string{"evil-01", "evil-01/" + subsFile} {
		all, target := machines(t, "a b")
		a, b := all[0], all[1]
		a.subscribe(1)
		a.sync()
		to := secret
		if filepath.Dir(link) != "." {
			to = filepath.Join(secret, subsFile)
			if err := os.Mkdir(filepath.Join(target, "evil-01"), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(to, filepath.Join(target, link)); err != nil {
			t.Fatal(err)
		}
		status, text := b.trySync()
		if status != 1 || !strings.Contains(text, link+" is a symbolic link, and is not followed") || strings.Contains(b.state(), feedURL(5)) || !strings.Contains(b.state(), feedURL(1)) {
			t.Errorf("%s: %d, %s; %s", link, status, text, b.state())
		}
		if err := os.RemoveAll(filepath.Join(target, "evil-01")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, filepath.Join(target, "own")); err != nil {
			t.Fatal(err)
		}
		if err := Peer(t.Context(), PeerOptions{Common: b.common(), Words: []string{"add", "own", filepath.Join(target, "own")}}, b.streams()); err != nil {
			t.Fatal(err)
		}
		if rounds(1, b); !strings.Contains(b.state(), feedURL(5)) {
			t.Errorf("a link that the user named is not read: %s", b.state())
		}
	}
}

// target returns the directory to which a machine publishes.
func (m *machine) target() string {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.Path, shareDir, targetFile))
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// A feed that a peer names has an origin, so that a fetch refuses a private address. It has one too
// if the peer is a directory, and if a later command applies a subscription that had to wait. The
// user's own feeds have none, even if the set is read back from the own documents.
func TestOriginOfFeedsOfPeers(t *testing.T) {
	origin := func(m *machine, n int) string {
		data, _ := os.ReadFile(filepath.Join(m.Path, "src", testdir.Hash(feedURL(n)), "etc/fetch/origin"))
		return strings.TrimSpace(string(data))
	}
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	a.subscribe(1)
	a.subscribe(2)
	a.sync()
	w, err := feedfiles.NewWriter(b.dir(), commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := w.Begin(testdir.Hash(feedURL(2)))
	if err != nil {
		t.Fatal(err)
	}
	b.sync()
	if got, want := origin(b, 1), filepath.Join(target, a.endpoint()); got != want || origin(b, 2) != "" {
		t.Errorf("the origin of a feed of a directory is %q, want %q", got, want)
	}
	tx.Close()
	w.Close()
	if err := Apply(t.Context(), ApplyOptions{Common: b.common()}, b.streams()); err != nil {
		t.Fatal(err)
	}
	if got := origin(b, 2); got != "a peer of lektor-share" {
		t.Errorf("the origin of a feed that had to wait is %q: %s", got, b.state())
	}
	if err := os.RemoveAll(filepath.Join(a.Path, "src", testdir.Hash(feedURL(1)))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(a.Path, shareDir, storeFile)); err != nil {
		t.Fatal(err)
	}
	if a.sync(); !strings.Contains(a.state(), feedURL(1)) || origin(a, 1) != "" {
		t.Errorf("the own feed has the origin %q: %s", origin(a, 1), a.state())
	}
}
