package entrystore

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// savedFiles is a directory with a file for each file of an entry that was saved. Its name is
// [Record.FileID], and its text the path.
const savedFiles = "etc/view/saved"

// maxKept is the maximum size of a saved file that [Record.Kept] reads.
const maxKept = 8 << 20

// FileID returns the id of a file of the entry by its URL. A URL that is shown, without user name and password, has
// the same id as the feed's.
func (r *Record) FileID(url string) string {
	sum := sha256.Sum256([]byte(r.Key() + "\n" + feedurl.RedactText(url)))
	return hex.EncodeToString(sum[:8])
}

// record returns the path of the record of the file that was saved from a URL.
func (r *Record) record(url string) string { return r.s.Dir.Join(savedFiles, r.FileID(url)) }

// Saved returns the path of the file that was saved from a URL, or "".
func (r *Record) Saved(url string) string {
	data, err := atomicfile.Read(r.record(url), MaxRules)
	if err != nil {
		return ""
	}
	path := strings.TrimSuffix(string(data), "\n")
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// SetSaved records the path of the file that was saved from a URL.
func (r *Record) SetSaved(url, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := atomicfile.NoLinks(r.s.Dir.Path(), "etc/view", savedFiles); err != nil {
		return err
	}
	record := r.record(url)
	return atomicfile.InDir(record, func() error { return atomicfile.WriteUnsynced(record, []byte(path+"\n")) })
}

// Kept returns the file that was saved from a URL, nil if there is none, it is too large, or it has another
// owner than the record: whoever may write to the lektor-dir cannot have the files of others shown.
func (r *Record) Kept(url string) []byte {
	f, err := atomicfile.OpenRegular(r.Saved(url))
	if err != nil {
		return nil
	}
	defer f.Close()
	var file, record unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &file)
	if unix.Lstat(r.record(url), &record) != nil || err != nil || file.Uid != record.Uid ||
		file.Size > maxKept {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKept))
	if err != nil {
		return nil
	}
	return data
}
