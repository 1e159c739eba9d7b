// Package save downloads the enclosures of entries.
package save

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [Save].
type Options struct {
	session.Common
	session.Names
	To    string   // directory to save to; it is created if it does not exist
	Query []string // save the entries that match, instead of Names; nil for none
	Type  string   // prefix of the type of enclosures, for example "audio"; "" means all
	Lang  string   // the language of an alternative to save instead, for example "de"; "" means any
	// Bitrate is the most kbit/s of an alternative to save instead; 0 means any.
	Bitrate int
	Newest  int  // of Query, save only this many of the newest entries of each feed; 0 means all
	Again   bool // save enclosures of entries with the flag d too
	Fetch   fetch.Config

	// writer returns a writer to a file with a number of bytes, -1 if it is unknown; nil means the file itself.
	writer func(part *os.File, total int64) io.Writer
}

// savedFlag is the flag of an entry whose enclosures were saved.
const savedFlag = "d"

// Save downloads the enclosures of entries to a directory for each feed, prints the paths of the
// files, and sets the flag d of the entries. It resumes interrupted downloads.
//
// An incomplete download has two files in the directory. HASH is a hash of the entry's name and
// the URL:
//
//	.lektor-HASH.part    the bytes received so far
//	.lektor-HASH         the state of the download, see [saving]
//
// A complete download is moved to its final name, and never replaces a file. Its state is removed
// after the entry has its flag, so that no file is downloaded twice after a kill.
func Save(ctx context.Context, o Options, s *cmdline.Streams) error {
	v, err := o.Open(o.Query, cmdline.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	list, err := toSave(ctx, v, o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.To, 0o777); err != nil {
		return err
	}
	o.Fetch.Now = v.Clock
	d := &saver{Store: v.Store, o: o, mover: undo.Unrecorded(v.Store), client: fetch.NewClient(o.Fetch)}
	defer d.client.Close()
	defer d.mover.Close()
	if err := d.nameFeeds(list); err != nil {
		return err
	}
	total := 0
	for _, r := range list {
		total += len(d.files(r))
	}
	bar := s.Report.Progress(total, "saving")
	defer bar.Done()
	for _, r := range list {
		if err := d.entry(ctx, r, bar); err != nil {
			return err
		}
	}
	bar.Done()
	if d.remote+d.waiting > 0 && o.Query != nil && s.Report.Errors() == d.remote {
		// Only servers failed. The next run tries again.
		return &cmdline.ExitError{Status: cmdline.StatusRemote}
	}
	return nil
}

// toSave returns the entries to save: those of the query, oldest first, or the named ones.
func toSave(ctx context.Context, v *session.Session, o Options) ([]*entrystore.Record, error) {
	const want = lektordir.FieldEnclosures | lektordir.FieldPubDate | lektordir.FieldElements
	var list []*entrystore.Record
	if o.Query != nil {
		found, err := v.Select(ctx, entrystore.Selection{Query: v.Query, Want: want})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(found, entrystore.ByDate)
		list = newest(found, o.Newest)
	} else {
		for r := range v.Named(ctx, o.Names, v.S.Report.Print) {
			err := r.Read(lektordir.Obligatory | want)
			if e := r.Get(0); err == nil && len(e.Enclosures) == 0 && e.Elements.First(alternative).Name == "" {
				err = fmt.Errorf("%s: the entry has no enclosure", r.Ref.Path())
			}
			if err != nil {
				v.S.Report.Print(err)
				continue
			}
			list = append(list, r)
		}
	}
	return slices.DeleteFunc(list, func(r *entrystore.Record) bool {
		return !o.Again && r.Ref.HasFlag(savedFlag[0])
	}), context.Cause(ctx)
}

// newest returns the newest n entries of each feed, or all if n is 0. The list has the oldest first.
func newest(list []*entrystore.Record, n int) []*entrystore.Record {
	newer := map[string]int{} // entries of each feed
	for _, r := range list {
		newer[r.Ref.Feed]++
	}
	return slices.DeleteFunc(list, func(r *entrystore.Record) bool {
		newer[r.Ref.Feed]--
		return n > 0 && newer[r.Ref.Feed] >= n
	})
}

// saver is one run of [Save].
type saver struct {
	*entrystore.Store
	o      Options
	mover  *undo.Mover
	client *fetch.Client
	dirs   map[string]string // directory by feed hash
	remote int               // number of failures of servers
	swept  map[string]bool   // directories that sweep has visited

	waiting int // number of files that are asked for later
}

// nameFeeds chooses the directory of each feed by its title. If titles are equal or differ only
// in case, the beginning of the hash is appended.
func (d *saver) nameFeeds(list []*entrystore.Record) error {
	d.dirs, d.swept = map[string]string{}, map[string]bool{}
	feeds, err := d.Dir.Feeds()
	d.Report(err)
	uses, names := map[string]int{}, map[string]string{}
	add := func(hash, title string) {
		if _, ok := names[hash]; !ok {
			names[hash] = fileName(cmp.Or(title, hash), "", maxFileName-len(" 12345678"))
			uses[query.Fold(names[hash])]++
		}
	}
	for _, f := range feeds {
		add(f.Hash, f.Title())
	}
	for _, r := range list {
		add(r.Ref.Feed, r.Feed().Title())
	}
	for hash, name := range names {
		if uses[query.Fold(name)] > 1 {
			name += " " + fileName(hash, "", 8) // a feed of another program may have any name
		}
		d.dirs[hash] = filepath.Join(d.o.To, name)
	}
	return nil
}

// entry saves the files of an entry. It returns only errors that end the command.
func (d *saver) entry(ctx context.Context, r *entrystore.Record, bar *cmdline.Progress) error {
	list, dir := d.files(r), d.dirs[r.Ref.Feed]
	if len(list) == 0 {
		return nil
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d.sweep(dir)
	failed := false
	for _, e := range list {
		path, err := d.file(ctx, dir, r, e)
		if err == nil && path != "" {
			_, err = fmt.Fprintln(d.S.Out, path)
		}
		bar.Add(1)
		switch {
		case err == nil, errors.Is(err, errLater):
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			// All other downloads would fail too.
			return cmdline.Hint(err, "free some space and run the command again: it resumes the download")
		case errors.Is(err, unix.EWOULDBLOCK):
			d.S.Report.Warn("%s: another process is downloading it; skipped", feedurl.Public(e.URL))
		case httpmsg.Remote(err), errors.As(err, new(*fetch.CutError)), errors.As(err, new(*integrityError)):
			d.remote++
			fallthrough
		default:
			d.S.Report.Print(saveError(err))
		}
		failed = failed || !e.beside
	}
	if failed {
		return nil
	}
	if err := d.whole(dir, r, list); err != nil {
		d.mover.Failed(err)
	}
	return nil
}

// file downloads a file of an entry, and returns its path, "" if it is there already. The error is errLater if the
// file is not asked for in this run.
func (d *saver) file(ctx context.Context, dir string, r *entrystore.Record, e file) (path string, err error) {
	s, err := d.begin(dir, r, e)
	if err != nil {
		return "", err
	}
	defer s.part.Close()
	if path, err = d.complete(ctx, s, r, e); err != nil {
		err = d.missed(s, err)
		s.drop()
	}
	return path, err
}

// whole sets the flag of an entry and forgets its downloads, if all are complete, but those that only belong to an
// enclosure and are not asked for any more.
func (d *saver) whole(dir string, r *entrystore.Record, list []file) error {
	for _, e := range list {
		s := newSaving(dir, r, e)
		if err := s.read(); err != nil {
			return err
		}
		part, err := os.Lstat(s.path + ".part")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !s.inPlace(part) && !(e.beside && s.failures >= maxFailures) {
			return nil
		}
	}
	if _, err := d.mover.SetFlags(r.Ref, savedFlag, ""); err != nil && !undo.Removed(err) {
		return err
	}
	for _, e := range list {
		newSaving(dir, r, e).forget()
	}
	return nil
}

// saveError replaces the advice for feeds in an HTTP status error by a text for files.
func saveError(err error) error {
	status := (*httpmsg.StatusError)(nil)
	if !errors.As(err, &status) || status.Detail != "" {
		return err
	}
	plain := *status
	plain.Detail = "the file was not saved"
	return &plain
}

// saving is the state of a download. Its file has a line for each value: a name, a tab and the
// value.
type saving struct {
	path string // path of the state; with .part the path of the received bytes
	part *os.File

	url       string
	validator string // validator of the received bytes
	total     int64  // size of the whole in bytes; -1 if unknown
	boot      string // id of the boot in which the bytes were received
	name      string // final name, recorded before the file gets it
	failures  int    // how often the server did not have the file
	next      time.Time
}

// begin opens and locks the download of an enclosure, and reads its state. The error is
// unix.EWOULDBLOCK if another process has it locked.
func (d *saver) begin(dir string, r *entrystore.Record, e file) (*saving, error) {
	s := newSaving(dir, r, e)
	var err error
	if s.part, err = os.OpenFile(s.path+".part", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o666); err != nil {
		return nil, err
	}
	// Some network file systems have no locks. The download goes on without one.
	if err = atomicfile.Hold(s.part, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		err = s.read()
	}
	if err != nil {
		s.part.Close()
		return nil, err
	}
	return s, nil
}

// newSaving returns the download of an enclosure, without its state.
func newSaving(dir string, r *entrystore.Record, e file) *saving {
	return &saving{path: filepath.Join(dir, ".lektor-"+r.FileID(e.URL)), url: e.URL, total: -1}
}

// read reads the state.
func (s *saving) read() error {
	data, err := atomicfile.Read(s.path, entrystore.MaxRules)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	state := values.Parse(data, '\t')
	state.Read(s.fields())
	if n, err := strconv.ParseInt(state.Get("total"), 10, 64); err == nil && n >= 0 {
		s.total = n
	}
	return nil
}

// fields returns the values of the state besides URL and size.
func (s *saving) fields() []values.Field {
	return []values.Field{{Name: "validator", Var: &s.validator}, {Name: "boot", Var: &s.boot},
		{Name: "name", Var: &s.name}, {Name: "failures", Var: &s.failures}, {Name: "next", Var: &s.next}}
}

// write writes the state by a function of package atomicfile.
func (s *saving) write(by func(path string, data []byte) error) error {
	state := values.New('\t')
	state.Set("url", s.url)
	state.Set("total", strconv.FormatInt(s.total, 10))
	state.Write(s.fields())
	return by(s.path, state.Text())
}

// drop removes the files of a download if no byte was received. Of one that failed, the state stays.
func (s *saving) drop() {
	if fi, err := s.part.Stat(); err == nil && fi.Size() == 0 {
		_ = os.Remove(s.path + ".part")
		if s.failures == 0 {
			_ = os.Remove(s.path)
		}
	}
}

// maxFailures is how often a file is asked for that the server does not have.
const maxFailures = 5

// retries are the waits between these times.
var retries = limiter.Backoff{Steps: []time.Duration{time.Hour, 5 * time.Hour, 25 * time.Hour, 125 * time.Hour}}

// errLater is the error for a file that is not asked for in this run.
var errLater = errors.New("the file is asked for later")

// missed records that a server did not have a file, or another than the feed says. It returns errLater if that
// needs no message: the file is asked for later, or no more.
func (d *saver) missed(s *saving, err error) error {
	status, _ := errors.AsType[*httpmsg.StatusError](err)
	switch {
	case errors.Is(err, errLater):
		if s.failures < maxFailures {
			d.waiting++
		}
		return err
	case status != nil && (status.Status == http.StatusNotFound || status.Status == http.StatusGone),
		errors.As(err, new(*integrityError)):
	default:
		return err
	}
	s.failures++
	s.next = d.Now.Add(retries.Wait(s.failures, 0, 0))
	if failed := s.write(atomicfile.Write); failed != nil {
		return failed
	}
	if s.failures == maxFailures && d.o.Query != nil {
		d.S.Report.Warn("%v; after %d times it is not asked for again", saveError(err), maxFailures)
		return errLater
	}
	return err
}

// forget removes the files of a download.
func (s *saving) forget() {
	_ = os.Remove(s.path + ".part")
	_ = os.Remove(s.path)
}

// complete downloads the rest of an enclosure, moves the file to its final name, and returns its
// path, "" if the file is there already.
func (d *saver) complete(ctx context.Context, s *saving, r *entrystore.Record, e file) (path string, err error) {
	fi, err := s.part.Stat()
	if err != nil {
		return "", err
	}
	if s.inPlace(fi) {
		return "", r.SetSaved(e.URL, s.final())
	}
	if d.o.Query != nil && !d.o.Again && (s.failures >= maxFailures || d.Now.Before(s.next)) {
		return "", errLater
	}
	boot := atomicfile.BootID() // if empty, no file is resumed, as unsynced bytes may be lost
	size := fi.Size()
	if boot == "" || s.boot != boot {
		size = 0
	}
	s.boot, s.name = boot, ""
	begin := func(p fetch.Piece) (io.Writer, error) {
		if err := s.part.Truncate(p.At); err != nil {
			return nil, err
		}
		if _, err := s.part.Seek(p.At, io.SeekStart); err != nil {
			return nil, err
		}
		s.validator, s.total = p.Validator, p.Total
		if d.o.writer != nil {
			return d.o.writer(s.part, s.total), s.write(atomicfile.WriteUnsynced)
		}
		return s.part, s.write(atomicfile.WriteUnsynced)
	}
	req := &fetch.Download{URL: e.URL, Origin: r.Feed().ID, Have: size, Validator: s.validator, Total: s.total}
	if err := d.client.Download(ctx, req, begin); err != nil {
		return "", err
	}
	if err := s.part.Sync(); err != nil {
		return "", err
	}
	if err := e.check(s.part); err != nil {
		return "", cmp.Or(s.part.Truncate(0), err)
	}
	if path, err = d.place(s, r, e); err == nil {
		err = r.SetSaved(e.URL, path)
	}
	return path, err
}

// inPlace reports whether the file has its final name already, because a run was killed after the
// download was complete, or other enclosures of the entry were not saved. part is the file of the
// received bytes: it has both names, or is empty, or nil if it does not exist.
func (s *saving) inPlace(part fs.FileInfo) bool {
	if s.name == "" || strings.ContainsRune(s.name, '/') {
		return false
	}
	final, err := os.Lstat(s.final())
	return err == nil && (os.SameFile(final, part) || (part == nil || part.Size() == 0) && final.Mode().IsRegular() &&
		(s.total < 0 || final.Size() == s.total))
}

// final returns the path of the complete file.
func (s *saving) final() string { return filepath.Join(filepath.Dir(s.path), s.name) }

// place moves a complete download to its final name, and returns the path. The name is the date
// and the title of the entry, with a number if that file exists.
func (d *saver) place(s *saving, r *entrystore.Record, e file) (path string, err error) {
	dir, ext := filepath.Dir(s.path), cmp.Or(e.ext, extension(e.Enclosure))
	for n := 1; n < 10_000; n++ {
		suffix := ext
		if n > 1 {
			suffix = " (" + strconv.Itoa(n) + ")" + ext
		}
		s.name = Name(d.Store, r, suffix, maxFileName)
		path = filepath.Join(dir, s.name)
		if atomicfile.Exists(path) {
			continue
		}
		// Record the name before using it. It is synced, because a power cut that loses the name and the
		// flag of the entry, but not the file, would cause a second download.
		if err := s.write(atomicfile.Write); err != nil {
			return "", err
		}
		switch err := os.Link(s.path+".part", path); {
		case err == nil:
			return path, os.Remove(s.path + ".part")
		case errors.Is(err, fs.ErrExist):
		default:
			// The file system has no links, for example FAT on a player.
			return path, os.Rename(s.path+".part", path)
		}
	}
	return "", fmt.Errorf("%s: too many files have this name", path)
}

// Name returns a name of at most limit bytes for a file of an entry: the date and the title, and a
// suffix.
func Name(s *entrystore.Store, r *entrystore.Record, suffix string, limit int) string {
	return fileName(r.Date().In(s.Now.Location()).Format("2006-01-02")+" "+r.Title(), suffix, limit)
}

// leftovers is the age after which an abandoned download is removed, and missing that after which it is
// forgotten that the server does not have the file.
const (
	leftovers = 30 * 24 * time.Hour
	missing   = 400 * 24 * time.Hour
)

// sweep removes abandoned downloads and temporary files from a directory, once in a run.
func (d *saver) sweep(dir string) {
	if d.swept[dir] {
		return
	}
	d.swept[dir] = true
	names, _ := os.ReadDir(dir) // leftovers do no harm, so errors are ignored
	for _, n := range names {
		base := n.Name()
		fi, err := n.Info()
		if !strings.HasPrefix(base, ".") || !strings.Contains(base, "lektor-") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(base, ".lektor-"), ".part")
		age := leftovers
		if fi != nil && !strings.HasSuffix(base, ".part") {
			if state := (&saving{path: filepath.Join(dir, base)}); state.read() == nil && state.failures > 0 {
				age = missing
			}
		}
		if of := len("..lektor-") + 16; len(base) > of && atomicfile.IsTemp(base, base[1:of]) {
			name, age = base[of-16:of], atomicfile.Abandoned // temporary file of a write that was killed
		}
		if err != nil || len(name) != 16 || !fi.Mode().IsRegular() || d.Now.Sub(fi.ModTime()) < age {
			continue
		}
		_ = os.Remove(filepath.Join(dir, base))
	}
}
