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

// Enclosure downloads one enclosure of an entry as [Save] does, into the same file, and returns
// the path of that file. The entry gets its flag when all its enclosures are saved. Until then
// the state of a complete download stays, so that Save does not download it again. progress is
// called with the number of bytes received so far; total is -1 if it is unknown.
func Enclosure(ctx context.Context, s *entrystore.Store, client *fetch.Client, to string, ref lektordir.Ref, url string,
	progress func(have, total int64)) (path string, err error) {
	r := s.Record(ref)
	if err := r.Read(lektordir.Obligatory | lektordir.FieldEnclosures | lektordir.FieldPubDate |
		lektordir.FieldElements); err != nil {
		return "", err
	}
	d := &saver{Store: s, o: Options{To: to}, mover: undo.Unrecorded(s), client: client}
	defer d.mover.Close()
	all := d.enclosures(r)
	i := slices.IndexFunc(all, func(f file) bool { return f.URL == url })
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
	one, err := d.begin(dir, r, all[i])
	if errors.Is(err, unix.EWOULDBLOCK) {
		return "", fmt.Errorf("%s: another process is downloading it", feedurl.Public(url))
	}
	if err != nil {
		return "", err
	}
	defer one.close()
	d.o.writer = func(f *os.File) io.Writer {
		at, _ := f.Seek(0, io.SeekCurrent)
		return &counter{f, at, one.total, progress}
	}
	if path, err = d.complete(ctx, one, r, all[i]); err != nil {
		one.drop()
		return "", saveError(err)
	}
	if path == "" { // it was in place before
		_ = os.Remove(one.path + ".part")
	}
	path = cmp.Or(path, one.final())
	return path, d.whole(dir, r, all)
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
