package fetch

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !os.IsNotExist(err) || !exists("/proc/self/stat")
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
