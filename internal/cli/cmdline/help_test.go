package cmdline

import (
	"bytes"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestHelp: commands are listed in groups, in the order of the app; hidden ones are not.
func TestHelp(t *testing.T) {
	var b bytes.Buffer
	app := &cli.App{Name: "x", Writer: &b, Commands: []*cli.Command{
		{Name: "show", Category: "Read", Usage: "print it"},
		{Name: "rm", Category: "Keep", Usage: "remove it"},
		{Name: "ls", Category: "Read", Usage: "list it"},
		{Name: "secret", Category: "Other", Hidden: true},
	}}
	if status := Main(app, []string{"x", "--help"}); status != 0 {
		t.Fatal(status)
	}
	want := "\nCOMMANDS:\n   Read:\n     show  print it\n     ls    list it\n   Keep:\n     rm    remove it\n\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("printed\n%s\nand not\n%s", &b, want)
	}
	b.Reset()
	if status := Main(app, []string{"x", "rm", "--help"}); status != 0 || strings.Contains(b.String(), "CATEGORY") {
		t.Errorf("%d\n%s", status, &b)
	}
	b.Reset()
	for _, c := range app.Commands {
		c.Category = ""
	}
	if status := Main(app, []string{"x", "--help"}); status != 0 || !strings.Contains(b.String(), "\nCOMMANDS:\n   show  print it\n   rm    remove it\n   ls    list it\n\n") {
		t.Errorf("%d\n%s", status, &b)
	}
}
