package cmdline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) {
	if os.Getenv("TINY") != "" {
		os.Exit(Main(tinyApp(), append([]string{"tiny"}, os.Args[1:]...)))
	}
	testdir.ScriptsMain(m, map[string]func(){
		"tiny": func() { os.Exit(Main(tinyApp(), append([]string{"tiny"}, os.Args[1:]...))) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			testdir.SetEnv(env, "")
			env.Setenv("LEKTORDIR", "")
			return nil
		},
		Cmds: testdir.Commands(nil),
	})
}

// tinyApp has one command for each convention.
func tinyApp() *cli.App {
	return &cli.App{
		Name:  "tiny",
		Usage: "try the conventions",
		Flags: []cli.Flag{DirFlag(), &cli.BoolFlag{Name: "all", Aliases: []string{"a"}}},
		Action: func(c *cli.Context) error {
			fmt.Fprintln(c.App.Writer, "root", c.Bool("all"))
			return nil
		},
		Commands: []*cli.Command{
			{
				Name:  "echo",
				Usage: "print flags and arguments",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "all", Aliases: []string{"a"}},
					&cli.BoolFlag{Name: "seen", Aliases: []string{"s"}},
					&cli.IntFlag{Name: "number", Aliases: []string{"n"}},
					&cli.DurationFlag{Name: "gap"},
					&cli.StringSliceFlag{Name: "tag", Aliases: []string{"t"}, Usage: "give `LABEL` to it, again and again"},
				},
				Action: func(c *cli.Context) error {
					s := StreamsOf(c)
					fmt.Fprintf(s.Out, "all=%v seen=%v number=%d gap=%v tags=%q args=%q dir=%s\n", c.Bool("all"), c.Bool("a") && c.Bool("s"),
						c.Int("n"), c.Duration("gap"), c.StringSlice("tag"), c.Args().Slice(), Dir(c))
					return nil
				},
			},
			{
				Name:  "range",
				Flags: []cli.Flag{NumericArgs(), &cli.BoolFlag{Name: "seen", Aliases: []string{"s"}}},
				Action: func(c *cli.Context) error {
					fmt.Fprintf(c.App.Writer, "%q\n", c.Args().Slice())
					return nil
				},
			},
			{
				Name:  "need",
				Flags: []cli.Flag{&cli.StringFlag{Name: "id", Required: true}},
				Action: func(c *cli.Context) error {
					fmt.Fprintln(c.App.Writer, c.String("id"))
					return nil
				},
			},
			{
				Name: "fail",
				Action: func(c *cli.Context) error {
					var errs []error
					for _, arg := range c.Args().Slice() {
						switch arg {
						case "local":
							errs = append(errs, Hint(errors.New("disk\nfull\x1b[2J"), "buy a disk"))
						case "local2":
							errs = append(errs, Hint(errors.New("another disk"), "buy a disk"))
						case "remote":
							errs = append(errs, &ExitError{Status: StatusRemote, Err: errors.New("server gone")})
						case "usage":
							errs = append(errs, Usagef("nonsense"))
						case "silent":
							errs = append(errs, &ExitError{Status: 75})
						case "reported":
							StreamsOf(c).Report.Error("said already")
						case "warned":
							StreamsOf(c).Report.Warn("mind the gap")
						}
					}
					return errors.Join(errs...)
				},
			},
			{
				Name:  "list",
				Flags: []cli.Flag{NulFlag()},
				Action: func(c *cli.Context) error {
					if err := NeedArgs(c, "a thing"); err != nil {
						return err
					}
					if slices.Contains(c.Args().Slice(), "-") {
						fmt.Fprintln(c.App.ErrWriter, "reads")
					}
					for item, err := range ReadArgs(c.Args().Slice(), StreamsOf(c).In, Nul(c)) {
						if err != nil {
							return err
						}
						fmt.Fprintf(c.App.Writer, "%q\n", item)
					}
					return nil
				},
			},
			{
				Name:  "signal",
				Flags: []cli.Flag{&cli.BoolFlag{Name: "expected"}},
				Action: func(c *cli.Context) error {
					self, _ := os.FindProcess(os.Getpid())
					self.Signal(syscall.SIGTERM)
					<-c.Context.Done()
					if c.Bool("expected") {
						return nil
					}
					return fmt.Errorf("fetching: %w", c.Context.Err())
				},
			},
			{
				Name: "whole",
				Action: func(c *cli.Context) error {
					fmt.Fprintln(c.App.ErrWriter, "reads")
					b, err := ReadAll(c.Context, StreamsOf(c).In, 1000)
					if err == nil {
						fmt.Fprintf(c.App.Writer, "%q\n", b)
					}
					return err
				},
			},
			{
				Name: "twice",
				Action: func(c *cli.Context) error {
					self, _ := os.FindProcess(os.Getpid())
					self.Signal(syscall.SIGINT)
					<-c.Context.Done()
					self.Signal(syscall.SIGINT)
					select {}
				},
			},
			{
				Name: "pipe",
				Action: func(c *cli.Context) error {
					r, w, _ := os.Pipe()
					r.Close()
					c.App.Writer.(*output).Writer = w
					_, err := fmt.Fprintln(StreamsOf(c).Out, "to nobody")
					<-c.Context.Done()
					return err
				},
			},
			{
				Name:   "panic",
				Action: func(c *cli.Context) error { panic("not hidden") },
			},
		},
	}
}

func TestStatus(t *testing.T) {
	local, remote := errors.New("x"), error(&ExitError{Status: StatusRemote, Err: errors.New("y")})
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{local, 1},
		{remote, 75},
		{Usagef("x"), 2},
		{fmt.Errorf("a: %w", remote), 75},
		{errors.Join(remote, remote), 75},
		{errors.Join(remote, local), 1},
		{errors.Join(local, fmt.Errorf("a: %w", Usagef("x"))), 2},
		{&ExitError{Status: 3}, 3},
		{Hint(remote, "wait"), 75},
		{fmt.Errorf("two: %w, %w", remote, local), 1},
	} {
		if got := Status(tc.err); got != tc.want {
			t.Errorf("Status(%v) = %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("HOME", "/h")
	t.Setenv("LEKTORDIR", "")
	for _, tc := range []struct{ lektordir, xdg, want string }{
		{"", "", "/h/.local/share/lektor"},
		{"", "/x", "/x/lektor"},
		{"", "relative", "/h/.local/share/lektor"},
		{"l", "/x", "l"},
	} {
		t.Setenv("LEKTORDIR", tc.lektordir)
		t.Setenv("XDG_DATA_HOME", tc.xdg)
		if got := DefaultDir(); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

// TestMainWithBuffers: an app runs in this process, with buffers for streams.
func TestMainWithBuffers(t *testing.T) {
	app := tinyApp()
	var out, errs bytes.Buffer
	app.Writer, app.ErrWriter, app.Reader = &out, &errs, strings.NewReader("b\n")
	if status := Main(app, []string{"tiny", "list", "a", "-"}); status != 0 {
		t.Errorf("status %d, %s", status, &errs)
	}
	if got, want := out.String(), "\"a\"\n\"b\"\n"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestReadArgs(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, tc := range []struct {
		args []string
		in   string
		nul  bool
		want []string
	}{
		{nil, "unread", false, nil},
		{[]string{"a", "-", "b"}, "1\n\n2\r\n3", false, []string{"a", "1", "2", "3", "b"}},
		{[]string{"-"}, "1\n2\r\x003\x00", true, []string{"1\n2\r", "3"}},
		{[]string{"-", "-"}, long + "\n", false, []string{long}},
	} {
		var got []string
		for item, err := range ReadArgs(tc.args, strings.NewReader(tc.in), tc.nul) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, item)
		}
		if fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%.40q of %.40q: got %.80q", tc.args, tc.in, got)
		}
	}
}

// TestReadArgsStreams: ReadArgs yields each line before it waits for the next.
func TestReadArgsStreams(t *testing.T) {
	r, w := io.Pipe()
	go io.WriteString(w, "first\n")
	for item, err := range ReadArgs([]string{"-"}, r, false) {
		if item != "first" || err != nil {
			t.Fatal(item, err)
		}
		break
	}
	broken := errors.New("broken")
	w.CloseWithError(broken)
	for item, err := range ReadArgs([]string{"-"}, r, false) {
		if item != "" || !errors.Is(err, broken) {
			t.Fatal(item, err)
		}
	}
}

func TestReporter(t *testing.T) {
	var b bytes.Buffer
	s := NewStreams("lektor-x", nil, nil, &b)
	r := s.Report
	r.Warn("a %s", "b\x1b[0m\nlektor-x: forged")
	r.Error("c")
	r.Info("d")
	r.Print(errors.Join(errors.New("e"), errors.Join(Hint(errors.New("f"), "g"), nil)))
	r.Print(fmt.Errorf("h: %w", errors.Join(errors.New("i"), errors.New("j"))))
	r.Print(&ExitError{Status: 1})
	r.Print(nil)
	want := `lektor-x: warning: a b[0m; lektor-x: forged
lektor-x: c
lektor-x: d
lektor-x: e
lektor-x: f
lektor-x: hint: g
lektor-x: h: i; j
`
	if b.String() != want {
		t.Errorf("got\n%s", &b)
	}
	if r.Warnings() != 1 || r.Errors() != 4 {
		t.Errorf("%d warnings, %d errors", r.Warnings(), r.Errors())
	}
}

// TestProgress: on a terminal the bar is removed before a line and drawn again after it.
// Elsewhere there is no bar.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	s := NewStreams("x", nil, nil, &b)
	p := s.Report.Progress(10, "feeds")
	p.Add(1)
	p.Done()
	if b.Len() > 0 {
		t.Errorf("a bar without a terminal: %q", &b)
	}

	s.Report.terminal = true
	p = s.Report.Progress(10, "fe\x1beds")
	if got := b.String(); !strings.Contains(got, "feeds") || strings.Contains(got, "\x1b") {
		t.Errorf("no bar, or one that is not cleaned: %q", got)
	}
	b.Reset()
	done := make(chan bool)
	for range 4 {
		go func() {
			for range 5 {
				p.Add(1)
				s.Report.Info("line")
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	for line := range strings.Lines(b.String()) {
		if i := strings.LastIndexByte(line, '\r'); strings.HasSuffix(line, "\n") && line[i+1:] != "x: line\n" {
			t.Errorf("a line on top of the bar: %q", line)
		}
	}
	p.Done()
	s.Report.closeBar()
	b.Reset()
	p.Add(1)
	s.Report.Info("after")
	if b.String() != "x: after\n" {
		t.Errorf("the bar came back: %q", &b)
	}
}

// TestCounter: without a total, the steps are counted, in a line that fits.
func TestCounter(t *testing.T) {
	var b bytes.Buffer
	s := NewStreams("x", nil, nil, &b)
	s.Report.Counter("older documents").Add(1)
	if b.Len() > 0 {
		t.Errorf("a counter without a terminal: %q", &b)
	}
	for _, columns := range []int{10, 20, 40, 80} {
		tty := terminal.Open(t, columns, 24)
		s := NewStreams("x", nil, nil, tty.TTY)
		s.Report.pace = 0
		p := s.Report.Counter("older documents")
		for range 123 {
			p.Add(1)
		}
		p.Done()
		s.Report.Info("done")
		out := tty.Output()
		for line := range strings.SplitSeq(out, "\r") {
			if n := terminal.Columns(line); n >= columns {
				t.Errorf("%d of %d columns: %q", n, columns, line)
			}
		}
		if columns >= 40 && (!strings.Contains(out, "older documents (123) ") || strings.Contains(out, "%")) || !strings.HasSuffix(out, "x: done\n") {
			t.Errorf("at %d columns: %q", columns, out)
		}
	}
}

// TestProgressFits: if a bar were wider than the terminal, each drawing would leave a line on the
// screen.
func TestProgressFits(t *testing.T) {
	for _, plain := range []string{"", "1"} {
		t.Setenv("NO_COLOR", plain)
		t.Setenv("TERM", "xterm")
		for _, columns := range []int{10, 20, 30, 34, 40, 50, 80, 200} {
			for _, total := range []int{1, 20, 2000, 1000000} {
				tty := terminal.Open(t, columns, 24)
				s := NewStreams("x", nil, nil, tty.TTY)
				s.Report.pace = 0
				p := s.Report.Progress(total, "fetching")
				p.Add(total - 1)
				s.Report.Info("a line") // the bar is removed, and drawn again
				p.Done()
				s.Report.Info("done")
				drawn, last, _ := strings.Cut(strings.Replace(tty.Output(), "x: a line\n", "", 1), "x: done")
				if last != "\n" || strings.Contains(drawn, "\n") {
					t.Errorf("%q and %q", drawn, last)
				}
				widest := ""
				for line := range strings.SplitSeq(drawn, "\r") {
					if terminal.Columns(line) > terminal.Columns(widest) {
						widest = line
					}
				}
				if n := terminal.Columns(widest); n == 0 || n >= columns {
					t.Errorf("%d of %d columns: %q", n, columns, widest)
				}
				// At 40 columns there is room for all parts, for thousands of feeds.
				if columns >= 40 && total <= 2000 && (!strings.Contains(drawn, "fetching") || !strings.Contains(drawn, fmt.Sprintf("(%d/%d)", total-1, total)) || !strings.ContainsAny(drawn, "█=░[")) {
					t.Errorf("something is missing at %d columns: %q", columns, drawn)
				}
			}
		}
	}
}

func TestVersion(t *testing.T) {
	if got := Version(); !regexp.MustCompile(`^\d+\.\d+\.\d+(\+[0-9a-f]{12}(\.dirty)?)?$`).MatchString(got) {
		t.Errorf("got %q; want a version, and perhaps a revision", got)
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for want, info := range map[string]*debug.BuildInfo{
		"1.2.3":                    {},
		"1.2.3+0123456789ab":       {Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}},
		"1.2.3+0123456789ab.dirty": {Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}},
	} {
		if got := withRevision("1.2.3", info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := withRevision("1.2.3", nil); got != "1.2.3" {
		t.Errorf("got %q without build information", got)
	}
}

func TestSignalErrorIsNotACancellation(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(signalError{syscall.SIGINT})
	if !errors.Is(ctx.Err(), context.Canceled) || errors.Is(context.Cause(ctx), context.Canceled) {
		t.Error("the cause must be distinguished from the cancellation")
	}
}
