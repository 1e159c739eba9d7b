// Lektor-view lists, shows and marks the entries of a lektor-dir. Its manual is
// lektor-view(1).
package main

import (
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
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fetchcmd"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/read/entrystore"
)

func main() { os.Exit(cmdline.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return cmdline.Completing(&cli.App{
		Name:  "lektor-view",
		Usage: "list, read and mark the entries of a lektor-dir",
		Description: `ENTRY is a path, a unique name, or a number or range (3, 2-5, 3-, $) of the last
numbered list. "." is the entry shown last, and "-" reads entries from standard
input. QUERY is described in lektor-query(7).

   lektor-view ls feed:lwn since:2d
   lektor-view show 3
   lektor-view ls -o path is:unread before:4w | lektor-view mark --set S -`,
		Flags: []cli.Flag{cmdline.DirFlag()},
		Commands: slices.Concat(
			group("Read", lsCommand(), showCommand(), nextCommand(), openCommand(), playCommand(), bookmarkCommand(),
				digestCommand(), followCommand(),
				countCommand(), statsCommand(), tuiCommand()),
			group("Organise", markCommand(), rmCommand(), undoCommand(), rulesCommand(), indexCommand()),
			group("Keep", saveCommand(), expireCommand()),
			group("Share", publishCommand(),
				cmdline.External("html", "lektor-pages", "write a site to read entries in a browser"),
				cmdline.External("maildir", "lektor-pages", "deliver entries to a maildir, each once"),
				cmdline.External("mbox", "lektor-pages", "print entries as a mailbox")),
		),
	}, entrystore.Complete)
}

// group sets the heading of commands in --help.
func group(heading string, commands ...*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.Category = heading
	}
	return commands
}

// common returns the options that all commands have.
func common(f *cmdline.Flags) session.Common {
	c := session.Common{Dir: cmdline.Dir(f.Context), Terminal: session.Terminal()}
	c.Index.Brief = true
	return c
}

// staying returns the options for a command that does not end soon.
func staying(f *cmdline.Flags) session.Common {
	c := common(f)
	c.Index.Brief = false
	return c
}

// numbered reports whether other commands take the numbers of this list.
func numbered(f *cmdline.Flags) bool { return f.Bool("number") || f.Streams().OutIsTerminal() }

// number returns the value of a flag, which is at least least, or otherwise if the flag is not set.
func number(f *cmdline.Flags, name string, least, otherwise int) int {
	if !f.IsSet(name) {
		return otherwise
	}
	return f.Number(name, least, 0)
}

func numberFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "number", Usage: usage} }

func textWidth(f *cmdline.Flags) int {
	if f.IsSet("width") {
		return f.Number("width", 20, 0)
	}
	return viewer.TextWidth(f.Streams())
}

func widthFlag() cli.Flag {
	return &cli.IntFlag{Name: "width", Aliases: []string{"w"}, Usage: "wrap text to `COLUMNS`",
		DefaultText: "$LEKTOR_WIDTH or 80, but no more than the terminal has"}
}

func allFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all", Aliases: []string{"a"},
		Usage: "select read entries too, even if the query does not ask for them"}
}

func dryRunFlag() cli.Flag { return cmdline.DryRunFlag("print the paths of the entries") }

func print0Flag() cli.Flag {
	return &cli.BoolFlag{Name: "print0", Aliases: []string{"0"},
		Usage: "end each record with NUL, not a newline; without -o print paths"}
}

// nulPaths returns how to print; -0 without -o prints paths.
func nulPaths(f *cmdline.Flags) cmdline.PrinterOptions {
	p := f.Printing()
	if p.Nul && p.Format == "" {
		p.Format = "path"
	}
	return p
}

func names(f *cmdline.Flags) session.Names {
	return session.Names{Args: f.Words(), Nul: cmdline.Nul(f.Context)}
}

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list entries, one a line; unread ones unless the query asks for others",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view ls -n 20 kernel not:feed:lwn
   lektor-view ls -a -o '{{.date | date "2 Jan"}} {{.title}}' author:kim`,
		Flags: []cli.Flag{
			allFlag(),
			&cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Usage: "list only the newest `N` entries",
				DefaultText: "all"},
			&cli.StringFlag{Name: "sort",
				Usage: "sort by `KEY`: date, delivered, feed, title, author, thread, flags, rank, relevance or random; -KEY reverses the order", Value: viewer.DefaultSort},
			numberFlag("number the list for other commands, as on a terminal"),
			cmdline.OutputFlag("print as `FORMAT`: path, url, tsv, json, another field or a template"),
			print0Flag(),
			cmdline.RawFlag(),
			noPagerFlag(),
		},
		Action: cmdline.Run(viewer.List, "", func(f *cmdline.Flags) viewer.ListOptions {
			return viewer.ListOptions{
				Common: common(f), Query: f.Words(), All: f.Bool("all"), Newest: number(f, "newest", 1, 0),
				Sort: f.String("sort"), Print: nulPaths(f), Number: numbered(f), Screen: f.Streams().Screen(),
				Pager: pager(f),
			}
		}),
	}
}

// showFlags returns the flags of show and next, and more.
func showFlags(more ...cli.Flag) []cli.Flag {
	return append(more,
		&cli.BoolFlag{Name: "raw", Usage: "print the content byte for byte, and nothing else"},
		&cli.BoolFlag{Name: "feed-text", Usage: "if the content is the article of the page, show the feed's own text"},
		widthFlag(),
		noPagerFlag(),
		cmdline.OutputFlag("print as `FORMAT`: path, url, tsv, json, another field or a template"),
	)
}

func showOptions(f *cmdline.Flags) viewer.ShowOptions {
	o := viewer.ShowOptions{Common: common(f), Raw: f.Bool("raw"), FeedText: f.Bool("feed-text"), Width: textWidth(f),
		Print: f.Printing()}
	if !o.Raw {
		o.Pager = pager(f)
	}
	return o
}

func noPagerFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-pager", Usage: "do not start $LEKTOR_PAGER, $PAGER or less"}
}

func pager(f *cmdline.Flags) viewer.Pager {
	if f.Bool("no-pager") {
		return viewer.Pager{}
	}
	return viewer.PagerOf(f.Streams().Screen())
}

func showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print entries as text",
		ArgsUsage: "ENTRY…",
		Description: `   lektor-view show 3
   lektor-view show --raw . | lynx -stdin`,
		Flags: append(showFlags(
			&cli.BoolFlag{Name: "mark", Aliases: []string{"m"}, Usage: "mark the entries shown as read"},
		), cmdline.NulFlag(), cmdline.NumericArgs()),
		Action: cmdline.Run(viewer.Show, "ENTRY", func(f *cmdline.Flags) viewer.ShowOptions {
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
		Description: `The next entry is the one after the entry shown last in the last list. If that list
has no unread entry left, or with a QUERY, it is the oldest. Exits with 1 if there is
none.

   lektor-view ls feed:lwn; lektor-view next`,
		Flags: showFlags(&cli.BoolFlag{Name: "keep", Aliases: []string{"k"}, Usage: "leave the entry unread"}),
		Action: cmdline.Run(viewer.Next, "", func(f *cmdline.Flags) viewer.ShowOptions {
			o := showOptions(f)
			o.Query, o.Mark = f.Words(), !f.Bool("keep")
			return o
		}),
	}
}

func openCommand() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "open entries in your browser, and mark them as read",
		ArgsUsage: "ENTRY…",
		Description: `The browser is $LEKTOR_BROWSER, or $BROWSER, or the first one found; no shell reads
it. It gets URLs of http and https, and of the schemes in etc/view/schemes.

   lektor-view open 3
   lektor-view open --link 2 .`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "link", Usage: "open link `N` of the content, by its number in the output of show",
				DefaultText: "the entry's page"},
			enclosureFlag("open", "the entry's page"),
			&cli.BoolFlag{Name: "comments", Usage: "open the page of comments"},
			keepFlag(), cmdline.NulFlag(), cmdline.NumericArgs(),
		},
		Action: cmdline.Run(viewer.Open, "ENTRY", func(f *cmdline.Flags) viewer.OpenOptions {
			o := handed(f)
			o.Comments = f.Bool("comments")
			if f.Bool("comments") && o.Link+o.Enclosure > 0 || o.Link > 0 && o.Enclosure > 0 {
				f.Fail(cmdline.Usagef("--link, --enclosure and --comments exclude each other"))
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
		Description: `The player is $LEKTOR_PLAYER, or mpv, or another one found; no shell reads it. If it
fails or is interrupted, the entry stays unread.

   lektor-view play 3
   lektor-view ls -o path query:Podcasts | LEKTOR_PLAYER='mpv --no-video' lektor-view play -`,
		Flags: []cli.Flag{
			enclosureFlag("play", "the first that is audio or video"),
			&cli.BoolFlag{Name: "page", Usage: "hand the entry's page to the player; mpv may find a video in it"},
			keepFlag(), cmdline.NulFlag(), cmdline.NumericArgs(),
		},
		Action: cmdline.Run(viewer.Play, "ENTRY", func(f *cmdline.Flags) viewer.OpenOptions {
			o := handed(f)
			o.Page = f.Bool("page")
			if o.Page && o.Enclosure > 0 {
				f.Fail(cmdline.Usagef("--page and --enclosure exclude each other"))
			}
			return o
		}),
	}
}

func bookmarkCommand() *cli.Command {
	return &cli.Command{
		Name:      "bookmark",
		Usage:     "bookmark entries by a command of yours",
		ArgsUsage: "ENTRY…",
		Description: `The command is $LEKTOR_BOOKMARK; no shell reads it. It gets the URL and the title of
each entry, or what its templates such as {{.url}} say.

   LEKTOR_BOOKMARK='lektor-bookmark linkding' lektor-view bookmark 3-5`,
		Flags: []cli.Flag{cmdline.NulFlag(), cmdline.NumericArgs()},
		Action: cmdline.Run(viewer.Bookmark, "ENTRY", func(f *cmdline.Flags) viewer.BookmarkOptions {
			return viewer.BookmarkOptions{Common: common(f), Names: names(f)}
		}),
	}
}

func saveCommand() *cli.Command {
	// These flags of requests have another meaning for save, or none.
	fetching := slices.DeleteFunc(fetchcmd.FetchFlags(maxEnclosure), func(f cli.Flag) bool {
		return slices.Contains([]string{httpmsg.FlagTimeout, httpmsg.FlagMaxDecoded, "per-host"}, f.Names()[0])
	})
	return &cli.Command{
		Name:      "save",
		Usage:     "download the enclosures of entries to a directory, and set the flag d",
		ArgsUsage: "DIR [ENTRY…]",
		Description: `Each feed has a directory in DIR, and files are named after date and title. An
incomplete file is continued. Entries with the flag d are skipped.

   lektor-view save ~/Podcasts 3-5
   lektor-view save ~/Podcasts --query 'feed:radio has:audio' --type audio`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "query",
				Usage: "save the entries that `QUERY` selects, unread ones unless it asks for others"},
			&cli.StringFlag{Name: "type",
				Usage: "save only enclosures whose MIME type begins with `TYPE`, such as audio", DefaultText: "all"},
			&cli.StringFlag{Name: "lang", Usage: "save the alternative in `LANG`, such as de, if there is one"},
			&cli.IntFlag{Name: "bitrate", Usage: "save the alternative with at most `N` kbit/s, if there are any",
				DefaultText: "any"},
			&cli.IntFlag{Name: "newest", Usage: "with --query, save only the `N` newest entries of each feed",
				DefaultText: "all"},
			&cli.BoolFlag{Name: "again", Usage: "save the enclosures of entries with the flag d too"},
			&cli.DurationFlag{Name: httpmsg.FlagTimeout, Value: fetch.DefaultDeadline,
				Usage: "fail if no data came for `TIME`"},
			cmdline.NulFlag(), cmdline.NumericArgs(),
		}, fetching...),
		Action: cmdline.Run(save.Save, "DIR", func(f *cmdline.Flags) save.Options {
			o := save.Options{
				Common: common(f), To: f.Args().First(), Type: f.String("type"), Again: f.Bool("again"),
				Lang: f.String("lang"), Bitrate: number(f, "bitrate", 1, 0), Newest: number(f, "newest", 1, 0),
				Names: session.Names{Args: f.Args().Tail(), Nul: cmdline.Nul(f.Context)},
			}
			o.Fetch = fetchcmd.Asking(f)
			o.Fetch.Gap = f.Time("gap")
			o.Fetch.MaxBytes, o.Fetch.MaxHeader, o.Fetch.Proxy = f.Bytes(httpmsg.FlagMaxBytes),
				f.Bytes(httpmsg.FlagMaxHeader), http.ProxyFromEnvironment
			switch {
			case f.IsSet("query") && len(o.Args) > 0:
				f.Fail(cmdline.Usagef("name entries or use --query, not both"))
			case f.IsSet("query"):
				o.Query = []string{f.String("query")}
			case o.Newest > 0:
				f.Fail(cmdline.Usagef("--newest needs --query"))
			case len(o.Args) == 0:
				f.Fail(cmdline.Usagef("ENTRY or --query is missing"))
			}
			return o
		}),
	}
}

// maxEnclosure is the default for the largest enclosure that is saved, in bytes.
const maxEnclosure = 4 << 30

func enclosureFlag(verb, otherwise string) cli.Flag {
	return &cli.IntFlag{Name: "enclosure", Usage: verb + " enclosure `N`, counted from 1 in the order of show",
		DefaultText: otherwise}
}

func keepFlag() cli.Flag {
	return &cli.BoolFlag{Name: "keep", Aliases: []string{"k"}, Usage: "leave the entries unread"}
}

// handed returns the options of open and play. Links and enclosures count from 1.
func handed(f *cmdline.Flags) viewer.OpenOptions {
	return viewer.OpenOptions{Common: common(f), Names: names(f), Link: number(f, "link", 1, 0),
		Enclosure: number(f, "enclosure", 1, 0), Keep: f.Bool("keep")}
}

func markCommand() *cli.Command {
	return &cli.Command{
		Name:      "mark",
		Usage:     "set and clear flags of entries; prints their new paths",
		ArgsUsage: "ENTRY…",
		Description: `Flags are letters: F flagged, S seen (read), T trashed, and a to z are yours.

   lektor-view mark --set read 2-5
   lektor-view ls -o path feed:ads | lektor-view mark -s S -`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "set", Aliases: []string{"s"},
				Usage: "set `FLAGS`: letters, or read, flagged, trashed or saved"},
			&cli.StringFlag{Name: "clear", Aliases: []string{"c"},
				Usage: "clear `FLAGS`: letters, or read, flagged, trashed or saved"},
			dryRunFlag(),
			cmdline.OutputFlag("print as `FORMAT`: path (default), url, tsv, json, another field or a template"),
			cmdline.NulFlag(), cmdline.NumericArgs(),
		},
		Action: cmdline.Run(viewer.Mark, "ENTRY", func(f *cmdline.Flags) viewer.MarkOptions {
			return viewer.MarkOptions{
				Common: common(f), Names: names(f), Set: f.String("set"), Clear: f.String("clear"),
				DryRun: f.Bool("dry-run"), Print: f.Printing(),
			}
		}),
	}
}

func rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "mark entries as trashed, or delete them with --now",
		ArgsUsage: "ENTRY…",
		Description: `Lists no longer show trashed entries. "undo" and "mark --clear T" bring them back.
Trashed and deleted entries are never delivered again.

   lektor-view rm 7; lektor-view undo
   lektor-view ls -o path read:1y | lektor-view rm --dry-run -
   lektor-view ls -o path is:trashed | lektor-view rm --now -`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "delete the entries; you cannot get them back"},
			dryRunFlag(), cmdline.NulFlag(), cmdline.NumericArgs(),
		},
		Action: cmdline.Run(viewer.Remove, "ENTRY", func(f *cmdline.Flags) viewer.RemoveOptions {
			return viewer.RemoveOptions{Common: common(f), Names: names(f), Now: f.Bool("now"),
				DryRun: f.Bool("dry-run")}
		}),
	}
}

func expireCommand() *cli.Command {
	return &cli.Command{
		Name:      "expire",
		Usage:     "delete entries that you read or trashed long ago",
		ArgsUsage: "[QUERY]",
		Description: `The time of reading or trashing counts, not the date of the entry. Flagged and
unread entries stay. A feed can have its own rule: lektor-fetch set FEED keep 100.
You cannot get the entries back, and they are never delivered again.

   lektor-view expire --read 90d --dry-run
   lektor-view expire --read 1w --keep 20 folder:news`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "read", Usage: "delete entries that were read `TIME` ago or earlier, such as 90d",
				DefaultText: "never"},
			&cli.IntFlag{Name: "keep",
				Usage: "keep the `N` entries of each feed that were read last; without --read delete all other read ones", DefaultText: "none"},
			&cli.StringFlag{Name: "trashed", Usage: "delete entries that were trashed `TIME` ago or earlier",
				Value: viewer.DefaultTrashed},
			&cli.StringFlag{Name: "unread",
				Usage:       "also delete unread entries that were delivered or marked `TIME` ago or earlier",
				DefaultText: "never"},
			&cli.BoolFlag{Name: "flagged", Usage: "also delete flagged entries"},
			&cli.BoolFlag{Name: "yes",
				Usage: "trust the clock, even if it is a month ahead of the last expire and of all servers"},
			dryRunFlag(),
		},
		Action: cmdline.Run(viewer.Expire, "", func(f *cmdline.Flags) viewer.ExpireOptions {
			return viewer.ExpireOptions{
				Common: common(f), Query: f.Words(), Read: f.String("read"), Keep: number(f, "keep", 0, -1),
				Trashed: f.String("trashed"), Unread: f.String("unread"), Flagged: f.Bool("flagged"),
				Yes: f.Bool("yes"), DryRun: f.Bool("dry-run"),
			}
		}),
	}
}

func undoCommand() *cli.Command {
	return &cli.Command{
		Name:  "undo",
		Usage: "take back the last command that moved entries; prints their new paths",
		Description: `Each further undo takes back the command before, up to 20 commands. Entries that
were marked since are left alone. "rm --now" cannot be taken back.

   lektor-view digest; lektor-view undo`,
		Flags: []cli.Flag{
			dryRunFlag(),
			cmdline.OutputFlag("print as `FORMAT`: path (default), url, tsv, json, another field or a template"),
		},
		Action: cmdline.Run(undo.Undo, "", func(f *cmdline.Flags) undo.Options {
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
			&cli.StringFlag{Name: "by",
				Usage:       "print a line for each `GROUP`: folder, feed, author, day or saved query",
				DefaultText: "one line for all"},
			&cli.BoolFlag{Name: "feeds", Aliases: []string{"f"}, Usage: "the same as --by feed"},
			cmdline.OutputFlag("print as `FORMAT`: tsv, json, a template, or one of unread, all, flagged and the group, or for feeds feedid and feedhash"),
		},
		Action: cmdline.Run(viewer.Count, "", func(f *cmdline.Flags) viewer.CountOptions {
			o := viewer.CountOptions{Common: common(f), Query: f.Words(), By: f.String("by"), Print: f.Printing(),
				Total: f.Streams().OutIsTerminal()}
			switch {
			case f.IsSet("by") && o.By == "":
				f.Fail(cmdline.Usagef("--by needs one of %s", strings.Join(viewer.Groups, ", ")))
			case f.Bool("feeds") && o.By != "" && o.By != "feed":
				f.Fail(cmdline.Usagef("--feeds and --by %s exclude each other", o.By))
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
		Usage:     "print for each feed its entries by week, its last error and its disk use",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view stats --weeks 26
   lektor-view stats --html >stats.html
   lektor-view stats -o '{{.bytes}} {{.feed}}' | sort -rn | head`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "weeks", Usage: "show `N` weeks, 1 to 520", Value: viewer.DefaultWeeks},
			&cli.BoolFlag{Name: "html", Usage: "print a page with bars"},
			cmdline.OutputFlag("print as `FORMAT`: tsv, json, a template, or one of feed, unread, all, flagged, weeks, newest, silent, error, bytes, feedid, feedhash"),
		},
		Action: cmdline.Run(viewer.Stats, "", func(f *cmdline.Flags) viewer.StatsOptions {
			o := viewer.StatsOptions{Common: common(f), Query: f.Words(), Weeks: f.Number("weeks", 1, 520),
				Print: f.Printing(), HTML: f.Bool("html"), Width: f.Streams().Screen().Width}
			if o.HTML && o.Print.Format != "" {
				f.Fail(cmdline.Usagef("--html and -o exclude each other"))
			}
			return o
		}),
	}
}

func digestCommand() *cli.Command {
	return &cli.Command{
		Name:      "digest",
		Usage:     "print titles and first lines of entries by feed, and mark them as read",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view digest --lines 2 since:1d
   lektor-view digest --keep | mail -s News kim
   lektor-view digest --html --full since:1d >today.html`,
		Flags: []cli.Flag{
			allFlag(),
			&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Usage: "print at most `N` lines of each content",
				Value: 4},
			&cli.BoolFlag{Name: "keep", Aliases: []string{"k"}, Usage: "leave the entries unread"},
			numberFlag("number the entries for other commands, as on a terminal"),
			widthFlag(),
			&cli.BoolFlag{Name: "html", Usage: "write an HTML document, by lektor-pages(1)"},
			&cli.BoolFlag{Name: "full", Usage: "with --html, write the whole content of each entry"},
			&cli.BoolFlag{Name: "images",
				Usage: "with --html, show images, which lets their servers see that somebody reads"},
			&cli.StringFlag{Name: "mail", Usage: "with --html, write a mail to `ADDRESS`, for sendmail -t"},
		},
		Action: cmdline.Run(viewer.Digest, "", func(f *cmdline.Flags) viewer.DigestOptions {
			o := viewer.DigestOptions{
				Common: common(f), Query: f.Words(), All: f.Bool("all"), Lines: f.Number("lines", 0, 0),
				Keep: f.Bool("keep"), Width: textWidth(f), Number: numbered(f),
			}
			o.HTML = htmlFlags(f)
			return o
		}),
	}
}

// htmlFlags returns the flags of digest for lektor-pages; nil without --html.
func htmlFlags(f *cmdline.Flags) []string {
	if !f.Bool("html") {
		for _, name := range []string{"full", "images", "mail"} {
			if f.IsSet(name) {
				f.Fail(cmdline.Usagef("--%s needs --html", name))
			}
		}
		return nil
	}
	for _, name := range []string{"number", "width"} {
		if f.IsSet(name) {
			f.Fail(cmdline.Usagef("--%s and --html exclude each other", name))
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
		Description: `The environment of a command has $LEKTOR_ENTRY, the path of the entry,
$LEKTOR_TITLE, $LEKTOR_URL, $LEKTOR_FEED and more. With --exec, $1 is the path
too. With --run, arguments can be templates, as for -o.

   lektor-view follow -n 10 feed:lwn
   lektor-view follow feed:lwn --run notify-send '{{.feed}}' '{{.title}}'
   lektor-view follow --exec 'notify-send "$LEKTOR_FEED" "$LEKTOR_TITLE"'`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "past", Aliases: []string{"n"},
				Usage: "first print the newest `N` of the entries that are there already"},
			&cli.StringFlag{Name: "exec", Usage: "for each entry run `COMMAND` by /bin/sh instead of printing it"},
			cmdline.RestFlag("run", "for each entry run `COMMAND`, with all words that follow, without a shell"),
			&cli.BoolFlag{Name: "rules", Usage: "apply the rules of etc/view/rules to arrivals"},
			numberFlag("number the entries for other commands, as on a terminal"),
			cmdline.OutputFlag("print as `FORMAT`: path, url, tsv, json, another field or a template"),
			print0Flag(),
			cmdline.RawFlag(),
		},
		Action: cmdline.Run(viewer.Follow, "", func(f *cmdline.Flags) viewer.FollowOptions {
			o := viewer.FollowOptions{
				Common: staying(f), Query: f.Words(), Past: f.Number("past", 0, 0), Exec: f.String("exec"),
				Rules: f.Bool("rules"), Print: nulPaths(f), Number: numbered(f),
				Screen: f.Streams().Screen(),
			}
			if f.IsSet("run") {
				o.Run = f.StringSlice("run")
			}
			if o.Exec != "" && o.Run != nil {
				f.Fail(cmdline.Usagef("--exec and --run exclude each other"))
			}
			return o
		}),
	}
}

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:      "rules",
		Usage:     "apply the rules of etc/view/rules to arrivals, or check them",
		ArgsUsage: "apply|check [QUERY]",
		Description: `A rule is a line: QUERY -> ACTION, ACTION. Actions are read, flag FLAGS, trash,
stop, and at the end run CMD ARG. Rules are applied to each entry once.

   echo 'feed:lwn title:/^\[\$\]/ -> read, flag p' >>"$LEKTORDIR/etc/view/rules"
   lektor-view rules check && lektor-view rules apply
   lektor-view rules apply --again --dry-run feed:lwn`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "again",
				Usage: "apply the rules to the entries that QUERY selects, even if that was done before"},
			dryRunFlag(),
			cmdline.OutputFlag("print as `FORMAT`: path (default), url, tsv, json, another field or a template"),
		},
		Action: cmdline.Run(rules.Apply, "apply or check", func(f *cmdline.Flags) rules.Options {
			what, words := f.Args().First(), f.Args().Tail()
			o := rules.Options{Common: common(f), Check: what == "check", DryRun: f.Bool("dry-run"),
				Undo: f.Streams().OutIsTerminal(), Print: f.Printing()}
			switch {
			case what != "apply" && what != "check":
				f.Fail(cmdline.Usagef("rules %s: write apply or check", what))
			case o.Check && f.Bool("again"), len(words) > 0 && (o.Check || !f.Bool("again")):
				f.Fail(cmdline.Usagef("a query needs rules apply --again"))
			case f.Bool("again"):
				o.Again = words
			}
			return o
		}),
	}
}

func indexCommand() *cli.Command {
	return &cli.Command{
		Name:  "index",
		Usage: "build the index that makes queries fast, or bring it up to date",
		Description: `The index is a file in $XDG_CACHE_HOME/lektor, which you can remove at any time.
Every command that takes a QUERY keeps it up to date.

   lektor-view index
   lektor-view index --check`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "compare the index with the lektor-dir, entry by entry"},
			&cli.BoolFlag{Name: "drop", Usage: "remove the index"},
		},
		Action: cmdline.Run(viewer.Index, "", func(f *cmdline.Flags) viewer.IndexOptions {
			return viewer.IndexOptions{Common: staying(f), Check: f.Bool("check"), Drop: f.Bool("drop")}
		}),
	}
}

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "write entries as a feed that others can read",
		ArgsUsage: "[QUERY]",
		Description: `   lektor-view publish --output good.xml --self https://me.example/good.xml is:flagged
   lektor-view publish --format json author:kim >kim.json
   lektor-view publish --archive www --per-page 50 --self https://me.example/all.atom`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "write `FORMAT`: atom, rss or json", Value: "atom"},
			&cli.StringFlag{Name: "output", Usage: "replace `FILE` as a whole", DefaultText: "standard output"},
			&cli.StringFlag{Name: "title", Usage: "call the feed `TITLE`", DefaultText: "the query"},
			&cli.StringFlag{Name: "self", Usage: "the feed will be found at `URL`"},
			&cli.StringFlag{Name: "link", Usage: "`URL` of the page that the feed belongs to"},
			&cli.StringSliceFlag{Name: "cloud",
				Usage: "readers register for updates at the rssCloud at `URL`; xmlrpc://… or a path /RPC2 for XML-RPC"},
			&cli.StringSliceFlag{Name: "hub",
				Usage: "readers subscribe to updates at the WebSub hub at `URL`; can be repeated"},
			&cli.StringFlag{Name: "ess", Usage: "readers learn cheaply of new entries from the ESS document at `URL`"},
			&cli.StringFlag{Name: "nno", Usage: "readers learn cheaply of new entries from the NNO document at `URL`"},
			&cli.BoolFlag{Name: "complete",
				Usage: "the document holds all entries of the feed; readers may forget others"},
			&cli.StringFlag{Name: "archive",
				Usage: "write to `DIR` a feed with its older entries in archives that never change"},
			&cli.StringFlag{Name: "paged", Usage: "write to `DIR` a feed in pages"},
			&cli.IntFlag{Name: "per-page", Usage: "put `N` entries into each archive or page", DefaultText: "none"},
			&cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Usage: "publish only the newest `N` entries",
				DefaultText: "all"},
			&cli.StringSliceFlag{Name: "include", Usage: "publish `FEED` although it is private; can be repeated"},
		},
		Action: cmdline.Run(publish.Publish, "", func(f *cmdline.Flags) publish.Options {
			return publish.Options{
				Common: common(f), Query: f.Words(), Newest: f.Number("newest", 0, 0), Format: f.String("format"),
				Output: f.String("output"), Title: f.String("title"), Self: f.String("self"), Link: f.String("link"),
				Clouds: f.StringSlice("cloud"), Hubs: f.StringSlice("hub"), Include: f.StringSlice("include"),
				ESS: f.String("ess"), NNO: f.String("nno"), Complete: f.Bool("complete"), Archive: f.String("archive"),
				Paged: f.String("paged"), PerPage: number(f, "per-page", 1, 0),
			}
		}),
	}
}

func tuiCommand() *cli.Command {
	return &cli.Command{
		Name:  "tui",
		Usage: "read on the whole screen",
		Description: `Press ? for the keys; q goes back and ends. Your own keys are in the file
etc/view/keys of the lektor-dir, see lektor-view-tui(1).

   lektor-view tui --keys newsboat`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "keys", Usage: "use the keys of `SET`: default, vim or newsboat",
				DefaultText: "the file etc/view/keys, or else default"},
			&cli.BoolFlag{Name: "plain",
				Usage: "write lines and draw nothing, for screen readers and simple terminals"},
			&cli.BoolFlag{Name: "mouse", Usage: "use the mouse; the terminal then selects no text"},
			&cli.BoolFlag{Name: "advance", Usage: "after you mark an entry in the list, move to the next one"},
			&cli.IntFlag{Name: "width", Aliases: []string{"w"}, Usage: "wrap text to at most `COLUMNS`",
				DefaultText: "80"},
		},
		Action: cmdline.Run(fullscreen.Run, "", func(f *cmdline.Flags) fullscreen.Options {
			o := fullscreen.Options{Common: staying(f),
				Fetch: fetch.Config{UserAgent: fetchcmd.UserAgent(f.App.Name), Proxy: http.ProxyFromEnvironment,
					Gap: fetch.DefaultGap, MaxBytes: maxEnclosure}}
			o.Commands = func(before ...string) *cmdline.Line { return cmdline.LineOf(f.App, before...) }
			o.Screen.Plain, o.Screen.Mouse, o.Screen.Advance = f.Bool("plain"), f.Bool("mouse"), f.Bool("advance")
			o.Screen.KeysSet = f.String("keys")
			// The player and the browser may use the terminal, and follow does not end by itself.
			o.Screen.OnTerminal = []string{"open", "play", "follow", "tui"}
			if f.IsSet("width") {
				o.Screen.Width = f.Number("width", 20, 0)
			}
			return o
		}),
	}
}
