//go:build !linux

package dirfs

// RenameNoReplace renames a directory, and fails with fs.ErrExist if the new name is taken. It uses
// rename(2), which replaces only empty directories, and entries are never empty.
func RenameNoReplace(from, to string) error { return PlainRename(from, to) }
