// Lektor-view lists, shows and marks the entries of a lektor-dir. Its manual is
// lektor-view(1).
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/fullscreen"
	"github.com/lektordir/lektor/internal/app/viewer/publish"
	"github.com/lektordir/lektor/internal/app/viewer/rules"
	"github.com/lektordir/lektor/internal/app/viewer/save"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feedcmd"
	"github.com/lektordir/lektor/internal/fetch"
)

func main() { os.Exit(command.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return command.Completing(&cli.App{
		Name:  "lektor-view",
		Usage: "list, read and mark the entries of a lektor-dir",
		Description: `ENTRY is a path, a unique name, a number or range (3, 2-5, 3-, $) of the last
list that a person saw, or "." for the entry shown last; "-" reads them from
standard input.
QUERY is described in lektor-query(7).

   lektor-view ls feed:lwn since:2d
   lektor-view show 3
   lektor-view ls -o path is:unread before:4w | lektor-view mark --set S -`,
		Flags: []cli.Flag{command.DirFlag()},
		Commands: []*cli.Command{
			lsCommand(), showCommand(), nextCommand(), openCommand(), playCommand(), saveCommand(),
			markCommand(), rmCommand(), undoCommand(), expireCommand(), rulesCommand(),
			countCommand(), statsCommand(), digestCommand(), followCommand(), publishCommand(), tuiCommand(), indexCommand(),
			command.External("html", "lektor-pages", "write a site to read entries in a browser"),
			command.External("maildir", "lektor-pages", "deliver entries into a maildir, each once"),
			command.External("mbox", "lektor-pages", "print entries as a mailbox, or write one to a new file"),
		},
	}, entries.Complete)
}

func common(f *command.Flags) session.Common {
	c := session.Common{Dir: command.Dir(f.Context), Terminal: session.Terminal()}
	c.Index.Brief = true
	return c
}

// staying is common for a command that does not end soon.
func staying(f *command.Flags) session.Common {
	c := common(f)
	c.Index.Brief = false
	return c
}

// numbered reports whether a person sees the list, whose numbers are the last then.
func numbered(f *command.Flags) bool { return f.Bool("number") || f.Streams().OutIsTerminal() }

func numberFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "number", Usage: usage} }

func textWidth(f *command.Flags) int {
	if f.IsSet("width") {
		return f.Number("width", 20, 0)
	}
	return viewer.TextWidth(f.Streams())
}

func widthFlag() cli.Flag {
	return &cli.IntFlag{Name: "width", Aliases: []string{"w"}, Usage: "wrap text to `COLUMNS`", DefaultText: "$LEKTOR_WIDTH, else 80, as far as the terminal has them"}
}

func allFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "read entries too, whatever the query says"}
}

func rawFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "raw", Usage: usage} }

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "change nothing, only print what would be done"}
}

const uncleaned = "do not clean text of what might harm a terminal"

func print0Flag() cli.Flag {
	return &cli.BoolFlag{Name: "print0", Aliases: []string{"0"}, Usage: "end records with NUL instead of a newline; without -o prints paths"}
}

// nulPaths gives -0 without -o a meaning.
func nulPaths(f *command.Flags) command.PrinterOptions {
	p := f.Printing()
	if p.Nul && p.Format == "" {
		p.Format = "path"
	}
	return p
}

func names(f *command.Flags) session.Names {
	return session.Names{Args: f.Words(), Nul: command.Nul(f.Context)}
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
			&cli.StringFlag{Name: "sort", Usage: "sort by `KEY`: date, delivered, feed, title, author, rank or relevance; -KEY the other way round", Value: viewer.DefaultSort},
			numberFlag("other commands take the numbers of this list, also of one into a pipe or a file"),
			command.OutputFlag("print `FORMAT`: path, url, tsv, json, another field or a template"),
			print0Flag(),
			rawFlag(uncleaned),
			noPagerFlag(),
		},
		Action: command.Run(viewer.List, "", func(f *command.Flags) viewer.ListOptions {
			o := viewer.ListOptions{
				Common: common(f), Query: f.Words(), All: f.Bool("all"), Sort: f.String("sort"), Print: nulPaths(f), Number: numbered(f),
				Screen: f.Streams().Screen(), Pager: pager(f),
			}
			if f.IsSet("newest") {
				o.Newest = f.Number("newest", 1, 0)
			}
			return o
		}),
	}
}

// showFlags are those of show and next.
func showFlags(more ...cli.Flag) []cli.Flag {
	return append(more,
		rawFlag("write the content byte for byte, and nothing else"),
		&cli.BoolFlag{Name: "feed-text", Usage: "what the feed has, where the content is the article of the page"},
		widthFlag(),
		noPagerFlag(),
		command.OutputFlag("print `FORMAT` instead: path, url, tsv, json, another field or a template"),
	)
}

func showOptions(f *command.Flags) viewer.ShowOptions {
	o := viewer.ShowOptions{Common: common(f), Raw: f.Bool("raw"), FeedText: f.Bool("feed-text"), Width: textWidth(f), Print: f.Printing()}
	if !o.Raw {
		o.Pager = pager(f)
	}
	return o
}

func noPagerFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-pager", Usage: "do not start $LEKTOR_PAGER, $PAGER or less"}
}

func pager(f *command.Flags) viewer.Pager {
	if f.Bool("no-pager") {
		return viewer.Pager{}
	}
	return viewer.PagerOf(f.Streams().Screen())
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
		Action: command.Run(viewer.Show, "ENTRY", func(f *command.Flags) viewer.ShowOptions {
			o := showOptions(f)
			o.Names, o.Mark = names(f), f.Bool("mark")
			return o
		}),
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
		Action: command.Run(viewer.Next, "", func(f *command.Flags) viewer.ShowOptions {
			o := showOptions(f)
			o.Query, o.Mark = f.Words(), !f.Bool("keep")
			return o
		}),
	}
}

func openCommand() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "open entries in the browser, and mark them as read",
		ArgsUsage: "ENTRY…",
		Description: `The browser is $LEKTOR_BROWSER, $BROWSER, or what there is; no shell is involved.
URLs of the web are handed to it, and those of schemes in etc/view/schemes.

   lektor-view open 3
   lektor-view open --link 2 .`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "link", Usage: "open link `N` of the content, by its number as show prints it", DefaultText: "the entry's own"},
			enclosureFlag("open", "the entry's page"),
			&cli.BoolFlag{Name: "comments", Usage: "open the page of comments"},
			keepFlag(), command.NulFlag(), command.NumericArgs(),
		},
		Action: command.Run(viewer.Open, "ENTRY", func(f *command.Flags) viewer.OpenOptions {
			o := handed(f, "link", "enclosure")
			o.Comments = f.Bool("comments")
			if f.Bool("comments") && o.Link+o.Enclosure > 0 || o.Link > 0 && o.Enclosure > 0 {
				f.Fail(command.Usagef("--link, --enclosure and --comments are for one URL each"))
			}
			return o
		}),
	}
}

func playCommand() *cli.Command {
	return &cli.Command{
		Name:      "play",
		Usage:     "play the audio or video of entries, and mark them as read",
		ArgsUsage: "ENTRY…",
		Description: `The player is $LEKTOR_PLAYER, mpv, or what else there is; no shell is involved. What
it does not play to its end with success stays unread.

   lektor-view play 3
   lektor-view ls -o path query:Podcasts | LEKTOR_PLAYER='mpv --no-video' lektor-view play -`,
		Flags: []cli.Flag{
			enclosureFlag("play", "the first that is audio or video"),
			&cli.BoolFlag{Name: "page", Usage: "hand the entry's page to the player, in which mpv may find a video"},
			keepFlag(), command.NulFlag(), command.NumericArgs(),
		},
		Action: command.Run(viewer.Play, "ENTRY", func(f *command.Flags) viewer.OpenOptions {
			o := handed(f, "enclosure")
			o.Page = f.Bool("page")
			if o.Page && o.Enclosure > 0 {
				f.Fail(command.Usagef("--page and --enclosure are for one URL each"))
			}
			return o
		}),
	}
}

func saveCommand() *cli.Command {
	// Of the flags of those who make requests these have a meaning of their own here,
	// or none.
	fetching := slices.DeleteFunc(feedcmd.FetchFlags(maxEnclosure), func(f cli.Flag) bool {
		return slices.Contains([]string{fetch.FlagTimeout, fetch.FlagMaxDecoded, "per-host"}, f.Names()[0])
	})
	return &cli.Command{
		Name:      "save",
		Usage:     "download the enclosures of entries to a directory, and flag them d",
		ArgsUsage: "DIR [ENTRY…]",
		Description: `Each feed has a directory in DIR, and files have names by date and title. What was
begun is gone on with; what has the flag d was saved before.

   lektor-view save ~/Podcasts 3-5
   lektor-view save ~/Podcasts --query 'feed:radio has:audio' --type audio`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "query", Usage: "save those of the entries that `QUERY` selects, unread ones unless it says otherwise"},
			&cli.StringFlag{Name: "type", Usage: "only enclosures whose MIME type begins with `TYPE`, as audio", DefaultText: "all"},
			&cli.BoolFlag{Name: "again", Usage: "those of entries with the flag d, too"},
			&cli.DurationFlag{Name: fetch.FlagTimeout, Value: fetch.DefaultDeadline, Usage: "give up when nothing came for `TIME`"},
			command.NulFlag(), command.NumericArgs(),
		}, fetching...),
		Action: command.Run(save.Save, "DIR", func(f *command.Flags) save.Options {
			o := save.Options{
				Common: common(f), To: f.Args().First(), Type: f.String("type"), Again: f.Bool("again"),
				Names: session.Names{Args: f.Args().Tail(), Nul: command.Nul(f.Context)},
			}
			o.Fetch = feedcmd.Asking(f)
			o.Fetch.Gap = f.Time("gap")
			o.Fetch.MaxBytes, o.Fetch.MaxHeader, o.Fetch.Proxy = f.Bytes(fetch.FlagMaxBytes), f.Bytes(fetch.FlagMaxHeader), http.ProxyFromEnvironment
			switch {
			case f.IsSet("query") && len(o.Args) > 0:
				f.Fail(command.Usagef("entries are named, or selected by --query"))
			case f.IsSet("query"):
				o.Query = []string{f.String("query")}
			case len(o.Args) == 0:
				f.Fail(command.Usagef("ENTRY or --query is missing"))
			}
			return o
		}),
	}
}

// maxEnclosure is the largest enclosure that is saved unless a flag says otherwise.
const maxEnclosure = 4 << 30

func enclosureFlag(verb, otherwise string) cli.Flag {
	return &cli.IntFlag{Name: "enclosure", Usage: verb + " enclosure `N`, in the order of show", DefaultText: otherwise}
}

func keepFlag() cli.Flag {
	return &cli.BoolFlag{Name: "keep", Aliases: []string{"k"}, Usage: "leave them unread"}
}

// handed are the options of open and play; numbers are flags that count from 1.
func handed(f *command.Flags, numbers ...string) viewer.OpenOptions {
	o := viewer.OpenOptions{Common: common(f), Names: names(f), Keep: f.Bool("keep")}
	for _, name := range numbers {
		if !f.IsSet(name) {
			continue
		}
		if n := f.Number(name, 1, 0); name == "link" {
			o.Link = n
		} else {
			o.Enclosure = n
		}
	}
	return o
}

func markCommand() *cli.Command {
	return &cli.Command{
		Name:      "mark",
		Usage:     "set and clear flags of entries; prints where they are now",
		ArgsUsage: "ENTRY…",
		Description: `Flags are letters: F flagged, S seen (read), T trashed, a to z your own.

   lektor-view mark --set read 2-5
   lektor-view ls -o path feed:ads | lektor-view mark -s S -`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "set", Aliases: []string{"s"}, Usage: "set `FLAGS`, letters or a word: read, flagged, trashed or saved"},
			&cli.StringFlag{Name: "clear", Aliases: []string{"c"}, Usage: "clear `FLAGS`, letters or a word: read, flagged, trashed or saved"},
			dryRunFlag(),
			command.OutputFlag("print `FORMAT`: path (the default), url, tsv, json, another field or a template"),
			command.NulFlag(), command.NumericArgs(),
		},
		Action: command.Run(viewer.Mark, "ENTRY", func(f *command.Flags) viewer.MarkOptions {
			return viewer.MarkOptions{
				Common: common(f), Names: names(f), Set: f.String("set"), Clear: f.String("clear"), DryRun: f.Bool("dry-run"), Print: f.Printing(),
			}
		}),
	}
}

func rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "mark entries as trashed: they are listed no more; --now deletes them",
		ArgsUsage: "ENTRY…",
		Description: `Undo brings them back, and so does mark --clear T. A fetcher delivers neither
what is trashed nor what is deleted again.

   lektor-view rm 7; lektor-view undo
   lektor-view ls -o path read:1y | lektor-view rm --dry-run -
   lektor-view ls -o path is:trashed | lektor-view rm --now -`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "delete them, which nothing takes back"},
			dryRunFlag(), command.NulFlag(), command.NumericArgs(),
		},
		Action: command.Run(viewer.Remove, "ENTRY", func(f *command.Flags) viewer.RemoveOptions {
			return viewer.RemoveOptions{Common: common(f), Names: names(f), Now: f.Bool("now"), DryRun: f.Bool("dry-run")}
		}),
	}
}

func expireCommand() *cli.Command {
	return &cli.Command{
		Name:      "expire",
		Usage:     "delete what was read, or trashed, long ago; nothing flagged or unread",
		ArgsUsage: "[QUERY]",
		Description: `The time is that of reading, or of trashing; the entry's own date means nothing.
A feed may have its own: lektor-fetch set FEED keep 100. Nothing takes it back,
and no fetcher delivers it again.

   lektor-view expire --read 90d --dry-run
   lektor-view expire --read 1w --keep 20 folder:news`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "read", Usage: "delete what was read `TIME` ago or earlier, as 90d", DefaultText: "never"},
			&cli.IntFlag{Name: "keep", Usage: "leave the `N` of each feed that were read last; by itself, delete the others that were read", DefaultText: "none, and nothing is deleted"},
			&cli.StringFlag{Name: "trashed", Usage: "delete what was trashed `TIME` ago or earlier", Value: viewer.DefaultTrashed},
			&cli.StringFlag{Name: "unread", Usage: "delete also what came `TIME` ago or earlier, and is unread", DefaultText: "never"},
			&cli.BoolFlag{Name: "flagged", Usage: "delete flagged entries as others"},
			&cli.BoolFlag{Name: "yes", Usage: "the clock is right, though it is a month ahead of the last expire and the last fetch"},
			dryRunFlag(),
		},
		Action: command.Run(viewer.Expire, "", func(f *command.Flags) viewer.ExpireOptions {
			o := viewer.ExpireOptions{
				Common: common(f), Query: f.Words(), Read: f.String("read"), Keep: -1, Trashed: f.String("trashed"), Unread: f.String("unread"),
				Flagged: f.Bool("flagged"), Yes: f.Bool("yes"), DryRun: f.Bool("dry-run"),
			}
			if f.IsSet("keep") {
				o.Keep = f.Number("keep", 0, 0)
			}
			return o
		}),
	}
}

func undoCommand() *cli.Command {
	return &cli.Command{
		Name:  "undo",
		Usage: "take back the last mark, rm, digest, next, open, play or show --mark; prints where entries are now",
		Description: `Again, it takes back the command before that, up to the last 20. What somebody
has marked since is left alone, and what rm --now deleted is gone.

   lektor-view digest; lektor-view undo`,
		Flags: []cli.Flag{
			dryRunFlag(),
			command.OutputFlag("print `FORMAT`: path (the default), url, tsv, json, another field or a template"),
		},
		Action: command.Run(undo.Undo, "", func(f *command.Flags) undo.Options {
			f.Fail(command.NoArgs(f.Context))
			return undo.Options{Common: common(f), DryRun: f.Bool("dry-run"), Print: f.Printing()}
		}),
	}
}

func countCommand() *cli.Command {
	return &cli.Command{
		Name:      "count",
		Usage:     "print how many entries are unread, and how many there are",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view count -o unread
   lektor-view count --by day since:1w`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "by", Usage: "a line for every `GROUP`: folder, feed, author, day or saved query", DefaultText: "one line for all"},
			&cli.BoolFlag{Name: "feeds", Aliases: []string{"f"}, Usage: "as --by feed"},
			command.OutputFlag("print `FORMAT`: tsv, json, one of unread, all, flagged, the group, of feeds feedid and feedhash, or a template"),
		},
		Action: command.Run(viewer.Count, "", func(f *command.Flags) viewer.CountOptions {
			o := viewer.CountOptions{Common: common(f), Query: f.Words(), By: f.String("by"), Print: f.Printing(), Total: f.Streams().OutIsTerminal()}
			switch {
			case f.IsSet("by") && o.By == "":
				f.Fail(command.Usagef("--by needs one of %s", strings.Join(viewer.Groups, ", ")))
			case f.Bool("feeds") && o.By != "" && o.By != "feed":
				f.Fail(command.Usagef("--feeds is --by feed, not --by %s", o.By))
			case f.Bool("feeds"):
				o.By = "feed"
			}
			return o
		}),
	}
}

func statsCommand() *cli.Command {
	return &cli.Command{
		Name:      "stats",
		Usage:     "print of each feed its entries by week, whether it is broken or silent, and its disk use",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view stats
   lektor-view stats -o '{{.bytes}} {{.feed}}' | sort -rn | head`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "weeks", Usage: "the last `N` weeks", Value: viewer.DefaultWeeks},
			command.OutputFlag("print `FORMAT`: tsv, json, one of feed, unread, all, flagged, weeks, newest, silent, error, bytes, feedid, feedhash, or a template"),
		},
		Action: command.Run(viewer.Stats, "", func(f *command.Flags) viewer.StatsOptions {
			return viewer.StatsOptions{Common: common(f), Query: f.Words(), Weeks: f.Number("weeks", 1, 520), Print: f.Printing(), Width: f.Streams().Screen().Width}
		}),
	}
}

func digestCommand() *cli.Command {
	return &cli.Command{
		Name:      "digest",
		Usage:     "print titles and first lines of unread entries by feed, and mark them as read",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view digest --lines 2 since:1d
   lektor-view digest --keep | mail -s News kim
   lektor-view digest --html --full since:1d >today.html`,
		Flags: []cli.Flag{
			allFlag(),
			&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Usage: "print `N` lines of each content", Value: 4},
			&cli.BoolFlag{Name: "keep", Aliases: []string{"k"}, Usage: "leave them unread"},
			numberFlag("print numbers for other commands to take, as on a terminal"),
			widthFlag(),
			&cli.BoolFlag{Name: "html", Usage: "write an HTML document, by lektor-pages(1)"},
			&cli.BoolFlag{Name: "full", Usage: "all of each content, with --html"},
			&cli.BoolFlag{Name: "images", Usage: "show images, with --html, which tells their servers that somebody reads"},
			&cli.StringFlag{Name: "mail", Usage: "write a mail to `ADDRESS`, with --html, for sendmail -t"},
		},
		Action: command.Run(viewer.Digest, "", func(f *command.Flags) viewer.DigestOptions {
			o := viewer.DigestOptions{
				Common: common(f), Query: f.Words(), All: f.Bool("all"), Lines: f.Number("lines", 0, 0), Keep: f.Bool("keep"), Width: textWidth(f), Number: numbered(f),
			}
			o.HTML = htmlFlags(f)
			return o
		}),
	}
}

// htmlFlags are those of digest that lektor-pages has, too; nil without --html.
func htmlFlags(f *command.Flags) []string {
	if !f.Bool("html") {
		for _, name := range []string{"full", "images", "mail"} {
			if f.IsSet(name) {
				f.Fail(command.Usagef("--%s is for digest --html", name))
			}
		}
		return nil
	}
	for _, name := range []string{"number", "width"} {
		if f.IsSet(name) {
			f.Fail(command.Usagef("--%s is for a digest of text, not for --html", name))
		}
	}
	args := []string{}
	for _, name := range []string{"lines", "mail"} {
		if f.IsSet(name) {
			args = append(args, "--"+name+"="+fmt.Sprint(f.Value(name)))
		}
	}
	for _, name := range []string{"full", "images"} {
		if f.Bool(name) {
			args = append(args, "--"+name)
		}
	}
	return args
}

func followCommand() *cli.Command {
	return &cli.Command{
		Name:      "follow",
		Usage:     "print entries as they arrive, until interrupted",
		ArgsUsage: "[QUERY]",
		Description: `A command finds the entry's path in $LEKTOR_ENTRY, and $LEKTOR_TITLE, $LEKTOR_URL,
$LEKTOR_FEED and more in its environment; that of --exec has the path in $1, too.
An argument of that of --run may be a template, as of -o.

   lektor-view follow -n 10 feed:lwn
   lektor-view follow feed:lwn --run notify-send '{{.feed}}' '{{.title}}'
   lektor-view follow --exec 'notify-send "$LEKTOR_FEED" "$LEKTOR_TITLE"'`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "past", Aliases: []string{"n"}, Usage: "first the newest `N` unread entries that are there already"},
			&cli.StringFlag{Name: "exec", Usage: "run `COMMAND` by /bin/sh for each entry instead of printing it"},
			command.RestFlag("run", "run `COMMAND` with its arguments, all that follows, for each entry instead of printing it; no shell is involved"),
			&cli.BoolFlag{Name: "rules", Usage: "apply the rules of etc/view/rules to what arrives"},
			numberFlag("print numbers for other commands to take, as on a terminal"),
			command.OutputFlag("print `FORMAT`: path, url, tsv, json, another field or a template"),
			print0Flag(),
			rawFlag(uncleaned),
		},
		Action: command.Run(viewer.Follow, "", func(f *command.Flags) viewer.FollowOptions {
			o := viewer.FollowOptions{
				Common: staying(f), Query: f.Words(), Past: f.Number("past", 0, 0), Exec: f.String("exec"), Rules: f.Bool("rules"), Print: nulPaths(f), Number: numbered(f),
				Screen: f.Streams().Screen(),
			}
			if f.IsSet("run") {
				o.Run = f.StringSlice("run")
			}
			if o.Exec != "" && o.Run != nil {
				f.Fail(command.Usagef("--exec and --run are two ways to say the same"))
			}
			return o
		}),
	}
}

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:      "rules",
		Usage:     "apply the rules of etc/view/rules to what has arrived; or check them",
		ArgsUsage: "apply|check [QUERY]",
		Description: `A rule is a line: QUERY -> ACTION, ACTION. Actions are read, flag FLAGS, trash,
stop, and at the end run CMD ARG. Each arrival is looked at once.

   echo 'feed:lwn title:/^\[\$\]/ -> read, flag p' >>"$LEKTORDIR/etc/view/rules"
   lektor-view rules check && lektor-view rules apply
   lektor-view rules apply --again --dry-run feed:lwn`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "again", Usage: "apply them to what QUERY selects, unread unless it says otherwise, whether that was done before or not"},
			dryRunFlag(),
			command.OutputFlag("print `FORMAT`: path (the default), url, tsv, json, another field or a template"),
		},
		Action: command.Run(applyOrCheck, "apply or check", func(f *command.Flags) rulesOptions {
			words := f.Args().Tail()
			o := rulesOptions{what: f.Args().First(), Options: rules.Options{
				Common: common(f), DryRun: f.Bool("dry-run"), Undo: f.Streams().OutIsTerminal(), Print: f.Printing(),
			}}
			switch {
			case o.what != "apply" && o.what != "check":
				f.Fail(command.Usagef("rules %s: it is apply or check", o.what))
			case o.what == "check" && (len(words) > 0 || f.Bool("again")), o.what == "apply" && len(words) > 0 && !f.Bool("again"):
				f.Fail(command.Usagef("a query is for rules apply --again"))
			case f.Bool("again"):
				o.Again = words
			}
			return o
		}),
	}
}

// rulesOptions are those of rules apply, or rules check.
type rulesOptions struct {
	rules.Options
	what string
}

func applyOrCheck(ctx context.Context, o rulesOptions, s *command.Streams) error {
	if o.what == "check" {
		return rules.Check(ctx, o.Options, s)
	}
	return rules.Apply(ctx, o.Options, s)
}

func indexCommand() *cli.Command {
	return &cli.Command{
		Name:  "index",
		Usage: "build the index that answers queries at once, or bring it up to date",
		Description: `It is a file in $XDG_CACHE_HOME/lektor and holds nothing that is not in the
lektor-dir. Every command that takes a QUERY keeps it up to date.

   lektor-view index
   lektor-view index --check`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "compare it with the lektor-dir, entry by entry"},
			&cli.BoolFlag{Name: "drop", Usage: "remove it"},
		},
		Action: command.Run(viewer.Index, "", func(f *command.Flags) viewer.IndexOptions {
			f.Fail(command.NoArgs(f.Context))
			return viewer.IndexOptions{Common: staying(f), Check: f.Bool("check"), Drop: f.Bool("drop")}
		}),
	}
}

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "write entries as a feed; nothing is rewritten while nothing has changed",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view publish --output good.xml --self https://me.example/good.xml is:flagged
   lektor-view publish --format json author:kim >kim.json
   lektor-view publish --archive www --per-page 50 --self https://me.example/all.atom`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "write a feed in `FORMAT`: atom, rss or json", Value: "atom"},
			&cli.StringFlag{Name: "output", Usage: "write to `FILE`, atomically", DefaultText: "standard output"},
			&cli.StringFlag{Name: "title", Usage: "call the feed `TITLE`", DefaultText: "the query"},
			&cli.StringFlag{Name: "self", Usage: "the feed will be found at `URL`"},
			&cli.StringFlag{Name: "link", Usage: "`URL` of the page that the feed belongs to"},
			&cli.StringSliceFlag{Name: "cloud", Usage: "the rssCloud at `URL` tells of updates; xmlrpc://… or a path /RPC2 for XML-RPC"},
			&cli.StringSliceFlag{Name: "hub", Usage: "the WebSub hub at `URL` tells of updates; may be repeated"},
			&cli.StringFlag{Name: "ess", Usage: "the ESS document at `URL` tells cheaply what is new"},
			&cli.StringFlag{Name: "nno", Usage: "so does the NNO document at `URL`"},
			&cli.BoolFlag{Name: "complete", Usage: "tell readers that what is not in the document is no longer part of the feed"},
			&cli.StringFlag{Name: "archive", Usage: "write to `DIR` a feed whose older entries are in archives that never change"},
			&cli.StringFlag{Name: "paged", Usage: "write to `DIR` a feed in pages"},
			&cli.IntFlag{Name: "per-page", Usage: "put `N` entries into each archive or page", DefaultText: "none"},
			&cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Usage: "only the newest `N`", DefaultText: "all"},
			&cli.StringSliceFlag{Name: "include", Usage: "publish entries of `FEED`, although it is not for others; may be repeated"},
		},
		Action: command.Run(publish.Publish, "", func(f *command.Flags) publish.Options {
			o := publish.Options{
				Common: common(f), Query: f.Words(), Newest: f.Number("newest", 0, 0), Format: f.String("format"), Output: f.String("output"),
				Title: f.String("title"), Self: f.String("self"), Link: f.String("link"),
				Clouds: f.StringSlice("cloud"), Hubs: f.StringSlice("hub"), Include: f.StringSlice("include"),
				ESS: f.String("ess"), NNO: f.String("nno"), Complete: f.Bool("complete"), Archive: f.String("archive"), Paged: f.String("paged"),
			}
			if f.IsSet("per-page") {
				o.PerPage = f.Number("per-page", 1, 0)
			}
			return o
		}),
	}
}

func tuiCommand() *cli.Command {
	return &cli.Command{
		Name:  "tui",
		Usage: "read on the whole screen",
		Description: `Folders and feeds, entries, and the entry; ? shows the keys, q goes back and
ends. Keys of your own go into etc/view/keys of the lektor-dir.

   lektor-view tui --keys newsboat`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "keys", Usage: "use the keys of `SET`: default, vim or newsboat", DefaultText: "the file etc/view/keys, else default"},
			&cli.BoolFlag{Name: "mouse", Usage: "heed the mouse, which then selects no text"},
			&cli.BoolFlag{Name: "advance", Usage: "go to the next entry when one was marked in the list"},
			widthFlag(),
		},
		Action: command.Run(fullscreen.Run, "", func(f *command.Flags) fullscreen.Options {
			f.Fail(command.NoArgs(f.Context))
			o := fullscreen.Options{Common: staying(f), Set: f.String("keys"), Mouse: f.Bool("mouse"), Advance: f.Bool("advance"), Fetch: fetch.Config{UserAgent: feedcmd.UserAgent(f.App.Name), Proxy: http.ProxyFromEnvironment}}
			if f.IsSet("width") {
				o.Width = f.Number("width", 20, 0)
			}
			return o
		}),
	}
}
