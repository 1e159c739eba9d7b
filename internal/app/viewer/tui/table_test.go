package tui

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The table of docs/tui.md has every action with its keys and its command, as they are.
func TestTable(t *testing.T) {
	var want strings.Builder
	keys := map[string]*Keys{}
	for _, set := range []string{"default", "newsboat"} {
		keys[set] = ParseKeys("test", []byte("use "+set))
	}
	of := func(set, action string) string {
		for _, key := range keys[set].order {
			if b := keys[set].bound[key]; b.steps[0].action == action && len(b.steps) == 1 {
				return "`" + key + "`"
			}
		}
		return ""
	}
	for _, a := range actions() {
		if a.command == "" {
			continue
		}
		fmt.Fprintf(&want, "| %s | %s | %s | `%s` |\n", a.name, of("default", a.name), of("newsboat", a.name), strings.ReplaceAll(a.command, "|", `\|`))
	}
	page, err := os.ReadFile("../../../../docs/tui.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if table+"\n" != want.String() {
		t.Errorf("docs/tui.md has\n%s\nand it is\n%s", table, want.String())
	}
}
