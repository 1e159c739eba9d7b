//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// savedIn is the directory for enclosures. It is in the lektor-dir, since calls elsewhere are not
// counted.
const savedIn = "etc/saved"

// saved checks that each enclosure was saved once and completely, and that no parts remain. If a
// save was killed just after its flag was set, its record stays for a month.
func (t *trial) saved(dir string) (err error) {
	defer must.Catch(&err)
	if t.s.saves == nil {
		return nil
	}
	missing := map[string]bool{}
	for _, name := range t.s.saves {
		missing[enclosure(name)] = true
	}
	for _, path := range must.Get(filepath.Glob(filepath.Join(dir, savedIn, "*/*"))) {
		if name := filepath.Base(path); strings.HasPrefix(name, ".") {
			if strings.HasSuffix(name, ".part") {
				err = fmt.Errorf("left: %s", path)
			}
			continue
		}
		data := string(must.Get(os.ReadFile(path)))
		if !missing[data] {
			must.Fail("%s: %d bytes that are no enclosure, or were saved before", path, len(data))
		}
		delete(missing, data)
	}
	if len(missing) > 0 {
		must.Fail("%d enclosures are missing", len(missing))
	}
	return err
}
