//go:build !linux

package lektordir

// renameNoReplace renames a directory and fails with fs.ErrExist where the new
// name is taken: the plain rename replaces no directory but an empty one, and
// entries have files.
func renameNoReplace(from, to string) error { return plainRename(from, to) }
