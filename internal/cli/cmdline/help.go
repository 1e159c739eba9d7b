package cmdline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// printHelp prints help as cli does, but lists commands by [commandList].
func printHelp(w io.Writer, text string, data any) {
	text = strings.Replace(text, `{{template "visibleCommandCategoryTemplate" .}}`, "{{commandList .VisibleCommands}}",
		1)
	// The help of a command does not name its category.
	text = strings.Replace(text, "{{if .Category}}\n\nCATEGORY:\n   {{.Category}}{{end}}", "", 1)
	cli.HelpPrinterCustom(w, text, data, map[string]any{"commandList": commandList})
}

// commandList returns the lines of commands in --help. Categories are in the order of their first
// commands; cli would sort them by name.
func commandList(commands []*cli.Command) string {
	var categories []string
	width := 0
	for _, c := range commands {
		if !slices.Contains(categories, c.Category) {
			categories = append(categories, c.Category)
		}
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	for _, category := range categories {
		indent := ""
		if category != "" {
			fmt.Fprintf(&b, "\n   %s:", category)
			indent = "  "
		}
		for _, c := range commands {
			if c.Category == category {
				fmt.Fprintf(&b, "\n%s   %-*s  %s", indent, width, c.Name, c.Usage)
			}
		}
	}
	return b.String()
}
