package dirfs

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
)

// AtOnce is the number of entries or feeds that are synced concurrently if each must be synced
// separately.
const AtOnce = 32

// Sync syncs paths of the lektor-dir dir, the files below them, and their parent directories: by
// one call for the file system of src if possible, otherwise each file separately. It is meant for
// many files, and does not report disk errors from before the call.
func Sync(dir string, rels ...string) error {
	if done, err := syncFS(dir + "/src"); done || err != nil {
		return err
	}
	all := workers.Limited(AtOnce)
	var parents []string
	for _, rel := range rels {
		if parent := filepath.Dir(rel); !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
		all.Go(func() error { return SyncEntry(filepath.Join(dir, rel)) })
	}
	for _, parent := range parents {
		all.Go(func() error { return SyncPath(filepath.Join(dir, parent)) })
	}
	return all.Wait()
}

// SyncMoves syncs the renames in directories of the lektor-dir dir: by one call for the file
// system if possible, otherwise each directory separately. It ignores missing directories.
func SyncMoves(dir string, rels ...string) error {
	if len(rels) == 0 {
		return nil
	}
	if done, err := syncFS(dir + "/src"); done || err != nil {
		return err
	}
	for _, rel := range rels {
		if err := SyncPath(filepath.Join(dir, rel)); err != nil && !isNotExist(err) {
			return err
		}
	}
	return nil
}

// Syncer syncs files of a lektor-dir, by one call for the whole file system if that is reliable.
type Syncer struct{ whole []*os.File }

// NewSyncer prepares to sync later writes.
func (d *Dir) NewSyncer() (*Syncer, error) {
	s := &Syncer{}
	if d.SlowSync {
		return s, nil
	}
	var devs []uint64
	for _, name := range []string{"tmp", "src"} {
		var st unix.Stat_t
		path := d.Join(name)
		if err := unix.Stat(path, &st); err != nil {
			s.Close()
			return nil, &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if slices.Contains(devs, uint64(st.Dev)) {
			continue
		}
		one, err := openFS(path)
		if one == nil {
			s.Close()
			return s, err
		}
		devs = append(devs, uint64(st.Dev))
		s.whole = append(s.whole, one)
	}
	return s, nil
}

// Whole reports whether whole file systems are synced.
func (s *Syncer) Whole() bool { return s.whole != nil }

// Sync syncs all writes since [Dir.NewSyncer], or only the paths if whole file systems cannot be
// synced.
func (s *Syncer) Sync(paths ...string) error {
	if s.whole == nil {
		for _, p := range paths {
			if err := SyncPath(p); err != nil {
				return err
			}
		}
	}
	for _, one := range s.whole {
		if err := syncFile(one); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the Syncer. It syncs nothing.
func (s *Syncer) Close() {
	for _, one := range s.whole {
		one.Close()
	}
	s.whole = nil
}

// SyncPath syncs a file or directory.
func SyncPath(path string) error { return atomicfile.SyncDir(path) }

// SyncEntry syncs a directory and all files and directories below it.
func SyncEntry(dir string) error {
	ents, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range ents {
		path := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			err = SyncEntry(path)
		case e.Type().IsRegular():
			err = SyncPath(path)
		}
		if err != nil {
			return err
		}
	}
	return SyncPath(dir)
}
