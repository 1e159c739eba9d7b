package index

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// TestFailed: a file that fails in any way is removed, with a warning, unless it can be used later, or another process
// uses it now.
func TestFailed(t *testing.T) {
	d, err := lektordir.Open(testdir.New(t).Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		err  error
		used bool
		stay bool
	}{
		"failed":           {err: errors.New("input/output error")},
		"of other version": {err: errForeign},
		"inconsistent":     {err: fmt.Errorf("a row: %w", errInconsistent)},
		"used":             {err: errInconsistent, used: true, stay: true},
		"busy":             {err: &BusyError{}, stay: true},
		"behind":           {err: errBehind, stay: true},
		"directory":        {err: &dirError{errors.New("input/output error")}, stay: true},
		"removed":          {err: fs.ErrNotExist, stay: true},
		"forbidden":        {err: &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, stay: true},
	} {
		t.Run(name, func(t *testing.T) {
			warned := 0
			o := Options{Cache: filepath.Join(t.TempDir(), "cache"), Warn: func(string, ...any) { warned++ }}
			x := New(d, o)
			if err := x.create(); err != nil {
				t.Fatal(err)
			}
			if tc.used {
				unlock, err := x.hold(false)
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			x.Failed(tc.err)
			if x.Exists() != tc.stay || (warned == 0) != tc.stay {
				t.Errorf("the file exists: %t; %d warnings", x.Exists(), warned)
			}
		})
	}
}
