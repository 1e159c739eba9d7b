// Package external runs the user's commands for entries, without a shell. Untrusted text is passed
// in arguments and the environment, never in the text of a command.
package external

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Argv is the arguments of a command that is run for entries. Arguments that are templates, as in
// -o, are filled in for each entry.
type Argv struct{ words []string }

// New parses the templates of a command. The error is a [*cmdline.UsageError].
func New(words []string) (*Argv, error) {
	if len(words) == 0 || words[0] == "" {
		return nil, cmdline.Usagef("the command is missing")
	}
	if isTemplate(words[0]) {
		return nil, cmdline.Usagef("%s: the name of a command cannot be a template", words[0])
	}
	for _, w := range words {
		if _, err := printer(io.Discard, w); isTemplate(w) && err != nil {
			return nil, err
		}
	}
	return &Argv{words}, nil
}

func isTemplate(word string) bool { return strings.Contains(word, "{{") }

// printer returns a printer of a template.
func printer(w io.Writer, template string) (*cmdline.Printer[*entrystore.Record], error) {
	return cmdline.NewPrinter(w, cmdline.PrinterOptions{Format: template, Nul: true}, entrystore.Columns())
}

// maxArgument is the maximum length of an argument or variable in bytes, a little less than systems
// accept.
const maxArgument = 64 << 10

// For returns the arguments for an entry. If the text of a template begins with a minus, a space
// is put in front, so that it is not taken for an option.
func (a *Argv) For(r *entrystore.Record) ([]string, error) {
	args := slices.Clone(a.words)
	for i, w := range args {
		if !isTemplate(w) {
			continue
		}
		var out bytes.Buffer
		p, err := printer(&out, w)
		if err == nil {
			err = cmp.Or(p.Print(r), p.Flush())
		}
		if err != nil {
			return nil, err
		}
		args[i] = short(strings.TrimSuffix(out.String(), "\x00"))
		if strings.HasPrefix(args[i], "-") && !strings.HasPrefix(w, "-") {
			args[i] = " " + args[i]
		}
	}
	return args, nil
}

// short removes NUL bytes, and cuts text to maxArgument bytes at the end of a character.
func short(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	if len(s) > maxArgument {
		s = strings.ToValidUTF8(s[:maxArgument], "")
	}
	return s
}

// Environ returns the environment variables that describe an entry. The manual lists them.
func Environ(s *entrystore.Store, r *entrystore.Record) []string {
	e := r.Get(lektordir.FieldID | lektordir.FieldLink | lektordir.FieldTitle |
		lektordir.FieldPubDate | lektordir.FieldEnclosures | lektordir.FieldCategories)
	var enclosure string
	if len(e.Enclosures) > 0 {
		enclosure = e.Enclosures[0].URL
	}
	env := []string{"LEKTORDIR=" + s.Dir.Path(), "LEKTOR_ENTRY=" + r.Path()}
	for _, f := range []struct{ name, value string }{
		{"TITLE", r.Title()},
		{"URL", r.URL()},
		{"FEED", r.Feed().Title()},
		{"FEEDID", feedurl.Public(r.Feed().ID)},
		{"AUTHOR", r.Author()},
		{"ID", e.ID},
		{"DATE", r.Date().UTC().Format(time.RFC3339)},
		{"FLAGS", r.Ref.Flags()},
		{"FOLDERS", strings.Join(s.Folders(r.Ref.Feed), ", ")},
		{"CATEGORIES", strings.Join(e.Categories, ", ")},
		{"ENCLOSURE", enclosure},
	} {
		env = append(env, "LEKTOR_"+f.name+"="+short(termsafe.Line(f.value)))
	}
	return env
}

// Words returns the command and its arguments, with the templates not filled in.
func (a *Argv) Words() []string { return a.words }

// Command returns a command with the environment of an entry and the output of s. When ctx ends, it
// gets SIGTERM, and is killed two seconds later.
func Command(ctx context.Context, s *entrystore.Store, r *entrystore.Record, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), Environ(s, r)...)
	cmd.Stdout, cmd.Stderr = s.S.Out, s.S.Err
	if out := s.S.OutFile(); out != nil {
		cmd.Stdout = out
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// Run runs the command for an entry. Its output goes to out, or to the output of s if out is nil.
func (a *Argv) Run(ctx context.Context, s *entrystore.Store, r *entrystore.Record, out io.Writer) error {
	args, err := a.For(r)
	if err != nil {
		return err
	}
	cmd := Command(ctx, s, r, args...)
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s for %s: %w", args[0], r.Ref.Path(), err)
	}
	return nil
}
