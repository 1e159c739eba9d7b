package lektordir

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Sync writes what is at these paths of the lektor-dir, and all that is below them, to
// the disk, and the names of the paths: by one call for the file system of src where
// there is one, else each file by itself. That is for many files; that a disk failed
// before the call it does not tell.
func (d *Dir) Sync(rels ...string) error {
	if done, err := syncFS(d.Join("src")); done || err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(atOnce)
	var parents []string
	for _, rel := range rels {
		if parent := filepath.Dir(rel); !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
		all.Go(func() error { return syncEntry(d.Join(rel)) })
	}
	for _, parent := range parents {
		all.Go(func() error { return syncPath(d.Join(parent)) })
	}
	return all.Wait()
}

// SyncMoves writes to the disk what was renamed in directories of the lektor-dir: by one
// call for the file system where there is one, else each directory by itself. A directory
// that is not there is no error.
func (d *Dir) SyncMoves(rels ...string) error {
	if len(rels) == 0 {
		return nil
	}
	if done, err := syncFS(d.Join("src")); done || err != nil {
		return err
	}
	for _, rel := range rels {
		if err := syncPath(d.Join(rel)); err != nil && !isNotExist(err) {
			return err
		}
	}
	return nil
}

// syncer makes what is written to a lektor-dir durable: by one call for a whole
// file system where that can be relied on.
type syncer struct{ whole []*fsSync }

// newSyncer prepares to sync what is written from now on.
func (d *Dir) newSyncer() (*syncer, error) {
	s := &syncer{}
	if d.opts.SlowSync {
		return s, nil
	}
	var devs []uint64
	for _, name := range []string{"tmp", "src"} {
		var st unix.Stat_t
		path := d.Join(name)
		if err := unix.Stat(path, &st); err != nil {
			s.close()
			return nil, &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if slices.Contains(devs, uint64(st.Dev)) {
			continue
		}
		one, ok, err := openFSSync(path)
		if err != nil || !ok {
			s.close()
			return s, err
		}
		devs = append(devs, uint64(st.Dev))
		s.whole = append(s.whole, one)
	}
	return s, nil
}

// sync makes what was written since newSyncer durable. Where whole file
// systems cannot be synced, it syncs the paths alone.
func (s *syncer) sync(paths ...string) error {
	if s.whole == nil {
		for _, p := range paths {
			if err := syncPath(p); err != nil {
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

// close ends it; what was not synced is not.
func (s *syncer) close() {
	for _, one := range s.whole {
		one.close()
	}
	s.whole = nil
}
