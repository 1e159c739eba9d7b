//go:build linux

package main

import "golang.org/x/sys/unix"

// Calls that newer architectures do without.
func init() {
	calls[unix.SYS_MKDIR] = call{"mkdir", formPathO, true}
	calls[unix.SYS_RENAME] = call{"rename", formRenameO, true}
	calls[unix.SYS_SYMLINK] = call{"symlink", formLinkO, true}
	calls[unix.SYS_UNLINK] = call{"unlink", formPathO, true}
	calls[unix.SYS_RMDIR] = call{"unlink", formPathO, true}
	calls[unix.SYS_CHMOD] = call{"chmod", formPathO, true}
}
