package lektordir

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
