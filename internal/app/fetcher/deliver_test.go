package fetcher

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// A viewer that takes an entry while put or deliver replace it keeps that version. The new
// one is withdrawn, is in no count, and its path is not printed.
func TestReplacedVersionIsTaken(t *testing.T) {
	const feed, id = "urn:feed", "urn:entry"
	d := must.Get(lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil))
	r, _ := newRunner(t, d)
	var printed []lektordir.Ref
	r.opts.Delivered = func(refs []lektordir.Ref) { printed = append(printed, refs...) }
	old, _, err := r.Put(t.Context(), feed, "", feedconv.Entry{ID: id, GUID: id, Title: "one"})
	if err != nil || len(printed) != 1 || printed[0].Path() != old {
		t.Fatal(old, printed, err)
	}
	taken := "cur/" + old[len("new/"):] + ";2,S"
	take := func(where string) {
		if where != "staged" {
			return
		}
		os.MkdirAll(filepath.Dir(d.Join(taken)), 0o777)
		if err := os.Rename(d.Join(old), d.Join(taken)); err != nil {
			t.Error(err)
		}
	}
	r.testHook, printed = take, nil
	path, out, err := r.Put(t.Context(), feed, "", feedconv.Entry{ID: id, GUID: id, Title: "two"})
	if path != taken || len(out.Updated) != 0 || len(printed) != 0 || err != nil {
		t.Errorf("%s is printed, not %s; %+v, %v", path, taken, out, err)
	}
	if all := must.Get(d.List(t.Context(), lektordir.ListOptions{AllVersions: true})); len(all) != 1 || all[0].Path() != taken {
		t.Errorf("%v", all)
	}
	if err := os.Rename(d.Join(taken), d.Join(old)); err != nil {
		t.Fatal(err)
	}
	// Deliver counts as update does.
	doc := Document{ID: "urn:other", Body: []byte(`<rss version="2.0"><channel><title>f</title><item><guid>1</guid><title>one</title></item></channel></rss>`)}
	r.testHook, printed = nil, nil
	if out, err := r.Deliver(t.Context(), doc); err != nil || len(out.New) != 1 || len(printed) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	old = printed[0].Path()
	taken = "cur/" + old[len("new/"):] + ";2,S"
	r.testHook, printed = take, nil
	doc.Body = []byte(`<rss version="2.0"><channel><title>f</title><item><guid>1</guid><title>two</title></item></channel></rss>`)
	if out, err := r.Deliver(t.Context(), doc); err != nil || len(out.Updated) != 0 || len(printed) != 0 {
		t.Errorf("%+v, %v, %v", out, printed, err)
	}
}
