package fullscreen

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/save"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

func (l *disk) Content(_ context.Context, ref lektordir.Ref, form string) ([]byte, error) {
	s := l.store()
	r := s.Record(ref)
	if err := r.Read(lektordir.AllFields); err != nil {
		return nil, err
	}
	switch form {
	case "html":
		return r.Get(0).Content, nil
	case "url":
		return []byte(termsafe.Line(r.URL())), nil
	case "title":
		return []byte(termsafe.Line(r.Title())), nil
	}
	return []byte(viewer.Text(s, r, viewer.DefaultText)), nil
}

// maxSavedName is the maximum length of the name that the reader offers, in bytes. It leaves room
// for a temporary name beside it.
const maxSavedName = 200

func (l *disk) SaveName(_ context.Context, ref lektordir.Ref, dir string) string {
	s := l.store()
	return strings.TrimSuffix(dir, "/") + "/" + save.Name(s, s.Record(ref), ".txt", maxSavedName)
}

func (l *disk) SaveEntry(ctx context.Context, ref lektordir.Ref, path string, replace bool) error {
	path, err := absolute(path)
	if err != nil {
		return err
	}
	var args []string // of lektor-pages
	switch strings.ToLower(filepath.Ext(path)) {
	case ".txt":
	case ".html", ".htm":
		args = []string{"digest", "--full"}
	case ".eml":
		args = []string{"message"}
	default:
		return fmt.Errorf("%s: the name must end in .txt, .html or .eml", path)
	}
	write := func(w io.Writer) error {
		if args != nil {
			return l.page(ctx, w, append(args, "--dir", l.dir.Path(), ref.Path())...)
		}
		text, err := l.Content(ctx, ref, "text")
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	if replace {
		return atomicfile.Output(path, write)
	}
	return atomicfile.CreatePrivateFrom(path, write)
}

// absolute returns a path that the user typed without ~/ and as an absolute path.
func absolute(path string) (string, error) {
	path, err := cmdline.ExpandHome(strings.TrimSpace(path))
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// page runs lektor-pages, which alone makes HTML harmless, and writes its output to w.
func (l *disk) page(ctx context.Context, w io.Writer, args ...string) error {
	t := &outputBuffer{}
	err := cmdline.RunBeside(ctx, "lektor-pages", args, nil, cmdline.NewStreams("lektor-view", nil, w, &t.messages))
	if messages := t.err(nil); messages != nil {
		err = messages
	}
	return err
}

func (l *disk) Download(ctx context.Context, ref lektordir.Ref, url, dir string,
	progress func(have, total int64)) (string, error) {
	dir, err := absolute(dir)
	if err != nil {
		return "", err
	}
	return save.Enclosure(ctx, l.store(), l.downloads, dir, ref, url, progress)
}
