package save

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// Enclosure downloads one enclosure of an entry, and what belongs to it, as [Save] does, into the same files. It
// returns the path of the enclosure. The entry gets its flag when all its files are saved. Until then the state of a
// complete download stays, so that Save does not download it again. progress is called with the number of bytes of the
// enclosure received so far; total is -1 if it is unknown.
func Enclosure(ctx context.Context, s *entrystore.Store, client *fetch.Client, to string, ref lektordir.Ref, url string,
	progress func(have, total int64)) (path string, err error) {
	r := s.Record(ref)
	if err := r.Read(lektordir.Obligatory | lektordir.FieldEnclosures | lektordir.FieldPubDate |
		lektordir.FieldElements); err != nil {
		return "", err
	}
	d := &saver{Store: s, o: Options{To: to}, mover: undo.Unrecorded(s), client: client}
	defer d.mover.Close()
	list := d.files(r)
	i := slices.IndexFunc(list, func(f file) bool { return f.URL == url && !f.beside })
	if i < 0 {
		return "", fmt.Errorf("%s: only http and https are downloaded, and no broadcast that goes on", feedurl.Public(url))
	}
	if err := d.nameFeeds([]*entrystore.Record{r}); err != nil {
		return "", err
	}
	dir := d.dirs[r.Ref.Feed]
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	d.sweep(dir)
	d.o.writer = func(f *os.File, total int64) io.Writer {
		at, _ := f.Seek(0, io.SeekCurrent)
		return &counter{f, at, total, progress}
	}
	path, err = d.file(ctx, dir, r, list[i])
	if errors.Is(err, unix.EWOULDBLOCK) {
		return "", fmt.Errorf("%s: another process is downloading it", feedurl.Public(url))
	}
	if err != nil {
		return "", saveError(err)
	}
	d.o.writer = nil
	for _, f := range list {
		if f.beside {
			_, _ = d.file(ctx, dir, r, f) // without it, the enclosure is there all the same
		}
	}
	return cmp.Or(path, r.Saved(url)), d.whole(dir, r, list)
}

// counter is a writer that reports how far a file has come.
type counter struct {
	io.Writer
	have, total int64
	progress    func(have, total int64)
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.have += int64(n)
	c.progress(c.have, c.total)
	return n, err
}
