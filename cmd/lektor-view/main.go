// Lektor-view lists, shows and marks the entries of a lektor-dir. Its manual is
// lektor-view(1).
package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/command"
)

func main() { os.Exit(command.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-view",
		Usage: "list, read and mark the entries of a lektor-dir",
		Description: `ENTRY is a path, a unique name, a number or range (3, 2-5, 3-, $) of the last
ls, or "." for the entry shown last; "-" reads them from standard input.
QUERY is described in lektor-query(7).

   lektor-view ls feed:lwn since:2d
   lektor-view show 3
   lektor-view ls -o path is:unread before:4w | lektor-view mark --set S -`,
		Flags: []cli.Flag{command.DirFlag()},
		Commands: []*cli.Command{
			lsCommand(), showCommand(), nextCommand(), markCommand(), rmCommand(),
			countCommand(), digestCommand(), followCommand(), publishCommand(),
		},
	}
}

func common(c *cli.Context) viewer.Common {
	return viewer.Common{Dir: command.Dir(c), Terminal: viewer.Terminal()}
}

// lineWidth is what lines are fitted to: the terminal, and nothing elsewhere.
func lineWidth(s *command.Streams) int {
	if s.OutIsTerminal() {
		return s.Width()
	}
	return 0
}

func textWidth(c *cli.Context, s *command.Streams) (int, error) {
	if c.IsSet("width") {
		n := c.Int("width")
		if n < 20 {
			return 0, command.Usagef("--width %d: at least 20 columns are needed", n)
		}
		return n, nil
	}
	return s.Width(), nil
}

func widthFlag() cli.Flag {
	return &cli.IntFlag{Name: "width", Aliases: []string{"w"}, Usage: "wrap text to `COLUMNS`", DefaultText: "the terminal's, else 80"}
}

func allFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "read entries too, whatever the query says"}
}

func rawFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "raw", Usage: usage} }

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "change nothing, only print what would be done"}
}

const uncleaned = "do not clean text of what might harm a terminal"

// printing reads -o, and -0 where it is about what is written.
func printing(c *cli.Context) command.PrinterOptions {
	return command.PrinterOptions{Format: command.OutputFormat(c), Nul: c.Bool("print0"), Raw: c.Bool("raw")}
}

func print0Flag() cli.Flag {
	return &cli.BoolFlag{Name: "print0", Aliases: []string{"0"}, Usage: "end records with NUL instead of a newline; without -o prints paths"}
}

// nulPaths gives -0 without -o a meaning.
func nulPaths(p command.PrinterOptions) command.PrinterOptions {
	if p.Nul && p.Format == "" {
		p.Format = "path"
	}
	return p
}

func names(c *cli.Context) viewer.Names {
	return viewer.Names{Args: c.Args().Slice(), Nul: command.Nul(c)}
}

func count(c *cli.Context, flag string) (int, error) {
	n := c.Int(flag)
	if n < 0 {
		return 0, command.Usagef("--%s %d: a number below zero makes no sense", flag, n)
	}
	return n, nil
}

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list entries with numbers; unread ones unless the query says otherwise",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view ls -n 20 kernel not:feed:lwn
   lektor-view ls -a -o '{{.date | date "2 Jan"}} {{.title}}' author:kim`,
		Flags: []cli.Flag{
			allFlag(),
			&cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Usage: "only the newest `N`", DefaultText: "all"},
			&cli.StringFlag{Name: "sort", Usage: "sort by `KEY`: date, delivered, feed, title or author; -KEY the other way round", Value: viewer.DefaultSort},
			command.OutputFlag("print `FORMAT`: path, url, tsv, json, another field or a template"),
			print0Flag(),
			rawFlag(uncleaned),
		},
		Action: func(c *cli.Context) error {
			s := command.StreamsOf(c)
			n, err := count(c, "newest")
			if err != nil {
				return err
			}
			if c.IsSet("newest") && n == 0 {
				return command.Usagef("--newest 0: at least one")
			}
			return viewer.List(c.Context, viewer.ListOptions{
				Common: common(c), Query: c.Args().Slice(), All: c.Bool("all"), Newest: n,
				Sort: c.String("sort"), Print: nulPaths(printing(c)), Width: lineWidth(s),
			}, s)
		},
	}
}

// showFlags are those of show and next.
func showFlags(more ...cli.Flag) []cli.Flag {
	return append(more,
		rawFlag("write the content byte for byte, and nothing else"),
		widthFlag(),
		&cli.BoolFlag{Name: "no-pager", Usage: "do not start $LEKTOR_PAGER or $PAGER"},
	)
}

func showOptions(c *cli.Context, s *command.Streams) (viewer.ShowOptions, error) {
	o := viewer.ShowOptions{Common: common(c), Raw: c.Bool("raw")}
	var err error
	if o.Width, err = textWidth(c, s); err != nil {
		return o, err
	}
	if s.OutIsTerminal() && !c.Bool("no-pager") && !o.Raw {
		pager, ok := os.LookupEnv("LEKTOR_PAGER")
		if !ok {
			pager = os.Getenv("PAGER")
		}
		o.Pager = pager
	}
	return o, nil
}

func showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print entries as text; marks nothing unless told to",
		ArgsUsage: "ENTRY…",
		Description: `   lektor-view show 3
   lektor-view show --raw . | lynx -stdin`,
		Flags: append(showFlags(
			&cli.BoolFlag{Name: "mark", Aliases: []string{"m"}, Usage: "mark what was shown as read"},
		), command.NulFlag(), command.NumericArgs()),
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "ENTRY"); err != nil {
				return err
			}
			s := command.StreamsOf(c)
			o, err := showOptions(c, s)
			if err != nil {
				return err
			}
			o.Names, o.Mark = names(c), c.Bool("mark")
			return viewer.Show(c.Context, o, s)
		},
	}
}

func nextCommand() *cli.Command {
	return &cli.Command{
		Name:      "next",
		Usage:     "show the next unread entry and mark it as read",
		ArgsUsage: "[QUERY]",
		Description: `Next in the last list after the entry shown last; when that has none left, or
with a QUERY, the oldest. Exits with 1 when there is none.

   lektor-view ls feed:lwn; lektor-view next`,
		Flags: showFlags(&cli.BoolFlag{Name: "keep", Aliases: []string{"k"}, Usage: "leave it unread"}),
		Action: func(c *cli.Context) error {
			s := command.StreamsOf(c)
			o, err := showOptions(c, s)
			if err != nil {
				return err
			}
			o.Query, o.Mark = c.Args().Slice(), !c.Bool("keep")
			return viewer.Next(c.Context, o, s)
		},
	}
}

func markCommand() *cli.Command {
	return &cli.Command{
		Name:      "mark",
		Usage:     "set and clear flags of entries; prints where they are now",
		ArgsUsage: "ENTRY…",
		Description: `Flags are letters: F flagged, S seen (read), T trashed, a to z your own.

   lektor-view mark --set S 2-5
   lektor-view ls -o path feed:ads | lektor-view mark -s S -`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "set", Aliases: []string{"s"}, Usage: "set `FLAGS`"},
			&cli.StringFlag{Name: "clear", Aliases: []string{"c"}, Usage: "clear `FLAGS`"},
			dryRunFlag(),
			command.OutputFlag("print `FORMAT`: path (the default), url, tsv, json, another field or a template"),
			command.NulFlag(), command.NumericArgs(),
		},
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "ENTRY"); err != nil {
				return err
			}
			return viewer.Mark(c.Context, viewer.MarkOptions{
				Common: common(c), Names: names(c), Set: c.String("set"), Clear: c.String("clear"),
				DryRun: c.Bool("dry-run"), Print: printing(c),
			}, command.StreamsOf(c))
		},
	}
}

func rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "delete entries; a fetcher does not deliver them again",
		ArgsUsage: "ENTRY…",
		Description: `   lektor-view rm 7
   lektor-view ls -a -o path is:read before:1y | lektor-view rm --dry-run -`,
		Flags: []cli.Flag{dryRunFlag(), command.NulFlag(), command.NumericArgs()},
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "ENTRY"); err != nil {
				return err
			}
			return viewer.Remove(c.Context, viewer.RemoveOptions{
				Common: common(c), Names: names(c), DryRun: c.Bool("dry-run"),
			}, command.StreamsOf(c))
		},
	}
}

func countCommand() *cli.Command {
	return &cli.Command{
		Name:      "count",
		Usage:     "print how many entries are unread, and how many there are",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view count -o unread
   lektor-view count --feeds since:1w`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "feeds", Aliases: []string{"f"}, Usage: "a line for every feed"},
			command.OutputFlag("print `FORMAT`: tsv, json, one of unread, all, flagged, feed, feedid, feedhash or a template"),
		},
		Action: func(c *cli.Context) error {
			return viewer.Count(c.Context, viewer.CountOptions{
				Common: common(c), Query: c.Args().Slice(), Feeds: c.Bool("feeds"), Print: printing(c),
			}, command.StreamsOf(c))
		},
	}
}

func digestCommand() *cli.Command {
	return &cli.Command{
		Name:      "digest",
		Usage:     "print titles and first lines of unread entries by feed, and mark them as read",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view digest --lines 2 since:1d
   lektor-view digest --keep | mail -s News kim`,
		Flags: []cli.Flag{
			allFlag(),
			&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Usage: "print `N` lines of each content", Value: 4},
			&cli.BoolFlag{Name: "keep", Aliases: []string{"k"}, Usage: "leave them unread"},
			widthFlag(),
		},
		Action: func(c *cli.Context) error {
			s := command.StreamsOf(c)
			lines, err := count(c, "lines")
			if err != nil {
				return err
			}
			width, err := textWidth(c, s)
			if err != nil {
				return err
			}
			return viewer.Digest(c.Context, viewer.DigestOptions{
				Common: common(c), Query: c.Args().Slice(), All: c.Bool("all"), Lines: lines, Keep: c.Bool("keep"), Width: width,
			}, s)
		},
	}
}

func followCommand() *cli.Command {
	return &cli.Command{
		Name:      "follow",
		Usage:     "print entries as they arrive, until interrupted",
		ArgsUsage: "[QUERY]",
		Description: `The command of --exec finds the entry's path in $1 and $LEKTOR_ENTRY, and
$LEKTOR_TITLE, $LEKTOR_URL and $LEKTOR_FEED in its environment.

   lektor-view follow -n 10 feed:lwn
   lektor-view follow --exec 'notify-send "$LEKTOR_FEED" "$LEKTOR_TITLE"'`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "past", Aliases: []string{"n"}, Usage: "first the newest `N` unread entries that are there already"},
			&cli.StringFlag{Name: "exec", Usage: "run `COMMAND` by /bin/sh for each entry instead of printing it"},
			command.OutputFlag("print `FORMAT`: path, url, tsv, json, another field or a template"),
			print0Flag(),
			rawFlag(uncleaned),
		},
		Action: func(c *cli.Context) error {
			s := command.StreamsOf(c)
			past, err := count(c, "past")
			if err != nil {
				return err
			}
			return viewer.Follow(c.Context, viewer.FollowOptions{
				Common: common(c), Query: c.Args().Slice(), Past: past, Exec: c.String("exec"),
				Print: nulPaths(printing(c)), Width: lineWidth(s),
			}, s)
		},
	}
}

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "write entries as a feed; nothing is rewritten while nothing has changed",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view publish --output good.xml --self https://me.example/good.xml is:flagged
   lektor-view publish --format json author:kim >kim.json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "write a feed in `FORMAT`: atom, rss or json", Value: "atom"},
			&cli.StringFlag{Name: "output", Usage: "write to `FILE`, atomically", DefaultText: "standard output"},
			&cli.StringFlag{Name: "title", Usage: "call the feed `TITLE`", DefaultText: "the query"},
			&cli.StringFlag{Name: "self", Usage: "the feed will be found at `URL`"},
			&cli.StringFlag{Name: "link", Usage: "`URL` of the page that the feed belongs to"},
			&cli.StringSliceFlag{Name: "cloud", Usage: "the rssCloud at `URL` tells of updates; xmlrpc://… or a path /RPC2 for XML-RPC; may be repeated"},
			&cli.StringSliceFlag{Name: "hub", Usage: "the WebSub hub at `URL` tells of updates; may be repeated"},
			&cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Usage: "only the newest `N`", DefaultText: "all"},
		},
		Action: func(c *cli.Context) error {
			n, err := count(c, "newest")
			if err != nil {
				return err
			}
			return viewer.Publish(c.Context, viewer.PublishOptions{
				Common: common(c), Query: c.Args().Slice(), Newest: n, Format: c.String("format"), Output: c.String("output"),
				Title: c.String("title"), Self: c.String("self"), Link: c.String("link"),
				Clouds: c.StringSlice("cloud"), Hubs: c.StringSlice("hub"),
			}, command.StreamsOf(c))
		},
	}
}
