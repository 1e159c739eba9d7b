package dirfs

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/workers"
)

// AtOnce is how many entries or feeds are synced at a time if each waits for the disk, or for
// other machines, by itself.
const AtOnce = 32

// Sync syncs these paths of the lektor-dir dir, the files below them, and the directories
// that name them: by one call for the file system of src if possible, else each file by
// itself. It is meant for many files, and does not report disk errors from before the call.
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

// SyncMoves writes to the disk what was renamed in directories of the lektor-dir dir: by one
// call for the file system where there is one, else each directory by itself. A directory
// that is not there is no error.
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

// Syncer makes what is written to a lektor-dir durable: by one call for a whole
// file system where that can be relied on.
type Syncer struct{ whole []*fsSync }

// NewSyncer prepares to sync what is written from now on. If slow, each file and directory
// is synced by itself, even if one call could sync the whole file system.
func (d *Dir) NewSyncer(slow bool) (*Syncer, error) {
	s := &Syncer{}
	if slow {
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
		one, ok, err := openFSSync(path)
		if err != nil || !ok {
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

// Sync makes what was written since [Dir.NewSyncer] durable. If whole file
// systems cannot be synced, it syncs the paths only.
func (s *Syncer) Sync(paths ...string) error {
	if s.whole == nil {
		for _, p := range paths {
			if err := SyncPath(p); err != nil {
				return err
			}
		}
	}
	for _, one := range s.whole {
		if err := one.sync(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends it; what was not synced is not.
func (s *Syncer) Close() {
	for _, one := range s.whole {
		one.close()
	}
	s.whole = nil
}

// SyncPath syncs a file or directory.
func SyncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// SyncEntry syncs a directory and all that is in it.
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
