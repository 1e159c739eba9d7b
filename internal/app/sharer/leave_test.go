package sharer

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// move is init with another target.
func (m *machine) move(target string, leave bool) error {
	return Init(m.t.Context(), InitOptions{Common: m.common(), Target: target, Leave: leave}, m.streams())
}

// Another target does not take the old documents away, and a message names them. With Leave they are
// removed, and nothing else.
func TestAnotherTarget(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 2, a, b)
	a.mark(1, 0, "S", "")
	rounds(2, a, b)
	old, next := filepath.Join(target, a.endpoint()), filepath.Join(t.TempDir(), "next")
	for _, m := range all {
		if err := m.move(target, true); err != nil || m.err.Len() == 0 || strings.Contains(m.err.String(), "stay") {
			t.Fatalf("the same target: %v, %s", err, &m.err)
		}
	}
	if found, _ := os.ReadDir(old); len(found) < 2 {
		t.Fatalf("the same target: documents are gone: %v", found)
	}
	if err := a.move(next, false); err != nil || !strings.Contains(a.err.String(), "the documents in "+old+" stay there") {
		t.Fatalf("%v, %s", err, &a.err)
	}
	a.sync()
	if found, _ := os.ReadDir(old); len(found) < 2 {
		t.Errorf("documents that stay: %v", found)
	}
	// Back, and away again for good.
	if err := a.move(target, true); err != nil || strings.Contains(a.err.String(), "stay") {
		t.Fatalf("%v, %s", err, &a.err)
	}
	if _, err := os.Stat(filepath.Join(next, a.endpoint())); !os.IsNotExist(err) {
		t.Errorf("the directory that was left: %v", err)
	}
	a.sync()
	if err := os.WriteFile(filepath.Join(old, "of mine"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := a.move(next, true); err != nil {
		t.Fatal(err)
	}
	if found, _ := os.ReadDir(old); len(found) != 1 || found[0].Name() != "of mine" {
		t.Errorf("with a file of others: %v", found)
	}
	if found, _ := os.ReadDir(filepath.Join(target, b.endpoint())); len(found) < 2 {
		t.Errorf("the documents of the other machine: %v", found)
	}
	rounds(2, a, b)
	same(t, a, b)

	// A target that is not there, or a link, is not left.
	if err := os.Rename(next, next+" away"); err != nil {
		t.Fatal(err)
	}
	if err := a.move(target, true); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a missing target: %v", err)
	}
	if line, _ := os.ReadFile(filepath.Join(a.Path, shareDir, targetFile)); string(line) != next+"\n" {
		t.Errorf("a missing target: the target is %q now", line)
	}
	elsewhere := filepath.Join(target, b.endpoint())
	for _, err := range []error{os.RemoveAll(next), os.Mkdir(next, 0o777), os.Symlink(elsewhere, filepath.Join(next, a.endpoint()))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := a.move(target, true); err != nil {
		t.Error(err)
	}
	if found, _ := os.ReadDir(elsewhere); len(found) < 2 {
		t.Errorf("documents behind a link: %v", found)
	}
}

// A kill before any change of a file leaves a lektor-dir that publishes again, in one of the targets.
func TestKilledLeaving(t *testing.T) {
	for n := 1; ; n++ {
		all, target := machines(t, "a b")
		a, b := all[0], all[1]
		subscribeAll(1, 1, a, b)
		rounds(2, a, b)
		o := InitOptions{Common: a.common(), Target: filepath.Join(t.TempDir(), "next"), Leave: true}
		steps := 0
		ctx, kill := context.WithCancel(t.Context())
		o.step = func() {
			if steps++; steps == n {
				kill()
				panic(kill)
			}
		}
		func() {
			defer func() { _ = recover() }()
			if err := Init(ctx, o, a.streams()); err != nil {
				t.Fatal(err)
			}
		}()
		if steps < n {
			if n < 5 {
				t.Errorf("%d steps", n)
			}
			return
		}
		a.sync()
		line, _ := os.ReadFile(filepath.Join(a.Path, shareDir, targetFile))
		place := filepath.Join(strings.TrimSpace(string(line)), a.endpoint())
		if found, _ := os.ReadDir(place); len(found) == 0 {
			t.Errorf("step %d: nothing in %s, of %s", n, place, target)
		}
	}
}

// On a server the documents are deleted, with the headers of the old target. If the server refuses, the
// target stays.
func TestLeaveServer(t *testing.T) {
	srv := newDAV(t, nextcloud)
	srv.dirs["/dav"] = true
	all, _ := machines(t, "a")
	a := all[0]
	subscribeAll(1, 1, a)
	a.mark(1, 0, "S", "")
	target := strings.Replace(srv.URL, "http://", "http://me:s3cret@", 1) + "/dav/"
	if err := a.move(target, false); err != nil {
		t.Fatal(err)
	}
	a.sync()
	srv.takeLog()
	next := filepath.Join(t.TempDir(), "next")
	srv.answer = func(w http.ResponseWriter, r *http.Request) int {
		w.WriteHeader(http.StatusForbidden)
		return http.StatusForbidden
	}
	if err := a.move(next, true); err == nil || !strings.Contains(err.Error(), "403 Forbidden: the document was not removed") {
		t.Errorf("refused: %v", err)
	}
	if line, _ := os.ReadFile(filepath.Join(a.Path, shareDir, targetFile)); !strings.Contains(string(line), srv.URL) {
		t.Errorf("refused: the target is %q now", line)
	}
	srv.answer = nil
	srv.takeLog()
	if err := a.move(next, true); err != nil || strings.Contains(a.err.String(), "stay") {
		t.Errorf("%v, %s", err, &a.err)
	}
	if got := strings.Split(srv.takeLog(), ", "); len(got) != len(documents) || slices.ContainsFunc(got, func(s string) bool { return !strings.HasPrefix(s, "DELETE a/") }) {
		t.Errorf("requests: %q", got)
	}
	if len(srv.files) != 0 {
		t.Errorf("files: %v", srv.files)
	}
}
