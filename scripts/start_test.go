package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// A program is started for each entry of a pipeline, so packages make nothing
// before main that may not be needed: no regular expression, no template, no big
// map. internal/lazy and sync.OnceValue put it off. One expression is some forty
// allocations.
const (
	maxInitBytes  = 32 << 10 // of the packages of this module together
	maxInitAllocs = 170
)

func TestProgramsStartSmall(t *testing.T) {
	inits := regexp.MustCompile(`(?m)^init github\.com/lektordir/lektor/\S+ .*, (\d+) bytes, (\d+) allocs$`)
	bin := build(t)
	for _, name := range []string{"lektor-fetch", "lektor-view", "lektor-ess", "lektor-cloudd", "lektor-share", "lektor-import"} {
		cmd := exec.Command(filepath.Join(bin, name), "--version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		packages, bytes, allocs := inits.FindAllSubmatch(out, -1), 0, 0
		for _, p := range packages {
			b, _ := strconv.Atoi(string(p[1]))
			a, _ := strconv.Atoi(string(p[2]))
			bytes, allocs = bytes+b, allocs+a
		}
		t.Logf("%s: %d bytes in %d allocations", name, bytes, allocs)
		if len(packages) < 5 || bytes > maxInitBytes || allocs > maxInitAllocs {
			t.Errorf("%s: %d packages make %d bytes in %d allocations before main; %d in %d may be:\n%s",
				name, len(packages), bytes, allocs, maxInitBytes, maxInitAllocs, out)
		}
	}
}
