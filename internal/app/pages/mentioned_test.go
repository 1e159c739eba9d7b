package pages

import (
	"strings"
	"testing"
)

// TestMentioned: an ID is found wherever it stands in a large file, and no part of one.
func TestMentioned(t *testing.T) {
	const id = "1234.feed@lektor.invalid"
	for _, at := range []int{0, 1, 1<<20 - 2048, 1<<20 - 1025, 1<<20 - 1024, 1<<20 - 10, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<21 - 1500, 3 << 20} {
		text := strings.Repeat("<", at/2) + strings.Repeat("x", at-at/2)
		for _, rest := range []string{"", strings.Repeat(">\n", 1<<20)} {
			ids := map[string]bool{id: false, "234.feed@lektor.invalid": false, "1234.feed@lektor.invali": false}
			if err := mentioned(strings.NewReader(text+"<"+id+">"+rest), ids); err != nil {
				t.Fatal(err)
			}
			if !ids[id] || ids["234.feed@lektor.invalid"] || ids["1234.feed@lektor.invali"] {
				t.Errorf("at %d: %v", at, ids)
			}
		}
	}
}
