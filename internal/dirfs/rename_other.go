//go:build !linux

package dirfs

// RenameNoReplace renames a directory and fails with fs.ErrExist where the new
// name is taken: the plain rename replaces no directory but an empty one, and
// entries have files.
func RenameNoReplace(from, to string) error { return PlainRename(from, to) }
