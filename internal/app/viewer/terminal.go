package viewer

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminalOf names the terminal that a file is by its device number, "" if it
// is none.
func terminalOf(f *os.File) string {
	if !term.IsTerminal(int(f.Fd())) {
		return ""
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(st.Rdev), 16)
}
