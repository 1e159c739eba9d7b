//go:build linux

package main

import "golang.org/x/sys/unix"

// Calls that newer architectures do without.
func init() {
	calls[unix.SYS_MKDIR] = call{"mkdir", formPathO, true, 0}
	calls[unix.SYS_RENAME] = call{"rename", formRenameO, true, 0}
	calls[unix.SYS_SYMLINK] = call{"symlink", formLinkO, true, 0}
	calls[unix.SYS_UNLINK] = call{"unlink", formPathO, true, 0}
	calls[unix.SYS_RMDIR] = call{"unlink", formPathO, true, unix.AT_REMOVEDIR}
	calls[unix.SYS_CHMOD] = call{"chmod", formPathO, true, 0}
}
