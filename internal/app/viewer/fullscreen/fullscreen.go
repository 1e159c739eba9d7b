// Package fullscreen runs the full-screen reader, package tui, on a lektor-dir.
package fullscreen

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/tui"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [Run].
type Options struct {
	session.Common
	// Screen has what the user chose: KeysSet, Width, Mouse, Plain and Advance, and OnTerminal. Run sets the rest.
	Screen tui.Options
	// Commands returns the parser of the command lines of this program that begin with some words.
	Commands func(before ...string) *cmdline.Line
	// Fetch is the configuration for fetching pictures.
	Fetch fetch.Config
}

// Run runs the full-screen reader. It fails if stdin or stdout is not a terminal.
func Run(ctx context.Context, o Options, s *cmdline.Streams) error {
	v, err := o.Open(nil, cmdline.PrinterOptions{}, s)
	if none, ok := errors.AsType[*lektordir.NotLektorDirError](err); ok && none.Err == nil && s.InIsTerminal() &&
		s.OutIsTerminal() {
		s.Report.Info("there is no lektor-dir at %s. Make one? [y/N]", o.Dir)
		if answer, _ := bufio.NewReader(s.In).ReadString('\n'); strings.HasPrefix(strings.ToLower(answer), "y") {
			if _, err = cmdline.CreateDir(o.Dir, nil); err == nil {
				v, err = o.Open(nil, cmdline.PrinterOptions{}, s)
			}
		}
	}
	if err != nil {
		return err
	}
	to := &o.Screen
	to.In, to.Out, to.Name, to.NoColor, to.Report = s.InFile(), s.OutFile(), v.Dir.Path(), !s.Color(), s.Report
	to.Width, to.Getenv, to.Random = cmp.Or(to.Width, viewer.DefaultText), os.Getenv, rand.Uint64
	to.Date = func(t time.Time) string { return viewer.Readable(t, v.Clock()) }
	if to.Fetcher, err = cmdline.Program(fetcherName); err != nil {
		to.NoFetcher = errors.New("this needs lektor-fetch, which is neither beside lektor-view nor in $PATH")
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the path of this program: %w", err)
	}
	to.Commands, to.Self = o.Commands("--dir", v.Dir.Path()), []string{self, "--dir", v.Dir.Path()}
	if err := readKeys(v.Dir, to); err != nil {
		return err
	}
	d := newDisk(o, v)
	defer d.names.Close()
	if to.Look, err = d.Look(ctx, ""); err != nil {
		return fmt.Errorf("look: %w", err)
	}
	// The screen shows the first error only. The others are visible after the reader has ended.
	for _, bad := range slices.Concat(to.Keys.Errs, to.Look.Errs) {
		s.Report.Warn("%v", bad)
	}
	if !s.InIsTerminal() || !s.OutIsTerminal() {
		return cmdline.Hint(errors.New("tui needs a terminal, on standard input and standard output"),
			"lektor-view ls and show write to pipes and files")
	}
	if name := os.Getenv("TERM"); !to.Plain && (name == "" || name == "dumb") {
		return cmdline.Hint(fmt.Errorf("tui needs a terminal that can move its cursor, and TERM is %q", name),
			"lektor-view tui --plain, ls, show and next work on any")
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40) // the memory of a large list is worth more than the time
	}
	if to.Screen, err = d.settings(); err != nil {
		s.Report.Warn("%v", err)
	}
	return tui.Run(ctx, d, to)
}

// readKeys sets the keys in to: those of the user's file, or of a set.
func readKeys(d *lektordir.Dir, to *tui.Options) error {
	if set := to.KeysSet; set != "" {
		if _, ok := keys.Set(set); !ok {
			return &cmdline.UsageError{Message: fmt.Sprintf("--keys %s: there is no such set of keys", set),
				Hint: fmt.Sprintf("there are %v", keys.Sets())}
		}
		to.Keys = tui.ParseKeys("--keys", []byte("use "+set))
		return nil
	}
	path, text, err := read(d, keysFile)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	to.KeysFile, to.Keys = path, tui.ParseKeys(path, text)
	if tui.RunsCommands(to.Keys) {
		to.NoCommands = feedfiles.TrustedFile(d, "etc", "view", keysFile)
	}
	return nil
}
