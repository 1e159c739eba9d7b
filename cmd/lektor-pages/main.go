// Lektor-pages writes entries of a lektor-dir as pages for a browser and as mail. Its
// manual is lektor-pages(1).
package main

import (
	"os"

	"github.com/urfave/cli/v2"

	app "github.com/lektordir/lektor/internal/app/pages"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
)

func main() { os.Exit(cmdline.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return cmdline.Completing(&cli.App{
		Name:  "lektor-pages",
		Usage: "write entries of a lektor-dir as web pages and as mail",
		Description: `lektor-view has the same commands and starts this program for them.

   lektor-pages html ~/www/news
   lektor-view html --newest 500 ~/www/news is:unread
   lektor-view maildir ~/Mail/feeds`,
		Flags:    []cli.Flag{cmdline.DirFlag()},
		Commands: []*cli.Command{htmlCommand(), maildirCommand(), mboxCommand(), messageCommand(), digestCommand()},
	}, entrystore.Complete)
}

func privateFlag() cli.Flag {
	return &cli.BoolFlag{Name: "private", Usage: "include feeds that are not for others"}
}

func common(f *cmdline.Flags, query []string) app.Common {
	return app.Common{Dir: cmdline.Dir(f.Context), Query: query, Private: f.Bool("private")}
}

func htmlCommand() *cli.Command {
	return &cli.Command{
		Name:      "html",
		Usage:     "write a site for a browser",
		ArgsUsage: "DIR [QUERY]",
		Description: `Without a QUERY, all entries are selected, read or not. Only pages that change are
written.

   lektor-pages html ~/www/news
   lektor-pages html --title Kernel ~/www/kernel folder:Linux since:30d`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "title", Usage: "the `TITLE` of the site", Value: "lektor"},
			&cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Usage: "only the newest `N` entries",
				DefaultText: "all"},
			&cli.IntFlag{Name: "per-page", Usage: "put `N` entries on a page of a list", Value: 50},
			imagesFlag("show images at once; their servers learn that somebody reads the entry"),
			privateFlag(),
		},
		Action: cmdline.Run(app.HTML, "DIR", func(f *cmdline.Flags) app.HTMLOptions {
			words := f.Words()
			o := app.HTMLOptions{
				Common: common(f, words[1:]), Output: words[0], Title: f.String("title"),
				PerPage: f.Number("per-page", 1, 10_000), Images: f.Bool("images"),
			}
			if f.IsSet("newest") {
				o.Newest = f.Number("newest", 1, 0)
			}
			if o.Output == "" {
				f.Fail(cmdline.Usagef("the directory of the site has no name"))
			}
			return o
		}),
	}
}

// mailFlags returns the flags of maildir and mbox.
func mailFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "query", Usage: "only entries that match `QUERY`", DefaultText: "all, read or not"},
		imagesFlag("show images in messages; most mail programs ask before they load them"),
	}
}

func imagesFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "images", Usage: usage} }

// mailOptions returns the options of all commands, with the query.
func mailOptions(f *cmdline.Flags) app.Common {
	c := common(f, nil)
	if f.IsSet("query") {
		c.Query = []string{f.String("query")}
	}
	return c
}

func maildirCommand() *cli.Command {
	return &cli.Command{
		Name:      "maildir",
		Usage:     "deliver entries into a maildir, each once",
		ArgsUsage: "DIR",
		Description: `Each entry is a message, each feed a thread. An entry is delivered once, even if you
move or delete the message.

   lektor-view maildir ~/Mail/feeds
   lektor-view maildir --query is:flagged ~/Mail/good`,
		Flags: append(mailFlags(),
			cmdline.OutputFlag("print `FORMAT` for each message: file, messageid, path, tsv, json, another field or a template")),
		Action: cmdline.Run(app.Maildir, "DIR", func(f *cmdline.Flags) app.MaildirOptions {
			switch words := f.Words(); {
			case len(words) > 1:
				f.Fail(&cmdline.UsageError{
					Message: "unexpected argument " + words[1], Hint: "write a query after --query"})
			case len(words) == 0 || words[0] == "":
				f.Fail(cmdline.Usagef("the maildir has no name"))
			}
			return app.MaildirOptions{
				Common: mailOptions(f), To: f.Args().First(), Images: f.Bool("images"), Print: f.Printing(),
			}
		}),
	}
}

func mboxCommand() *cli.Command {
	return &cli.Command{
		Name:      "mbox",
		Usage:     "write entries as a mailbox",
		ArgsUsage: " ",
		Description: `To add entries to existing mail, each once, use maildir.

   lektor-view mbox --query 'feed:lwn since:1w' >lwn.mbox`,
		Flags: mailFlags(),
		Action: cmdline.Run(app.Mbox, "", func(f *cmdline.Flags) app.MboxOptions {
			if words := f.Words(); len(words) > 0 {
				f.Fail(&cmdline.UsageError{Message: "unexpected argument " + words[0],
					Hint: "the mailbox is written to standard output, so write >FILE; a query follows --query"})
			}
			return app.MboxOptions{Common: mailOptions(f), Images: f.Bool("images")}
		}),
	}
}

func messageCommand() *cli.Command {
	return &cli.Command{
		Name:      "message",
		Usage:     "write an entry as a mail message; mark nothing",
		ArgsUsage: "ENTRY",
		Description: `ENTRY is a path or a unique name.

   lektor-pages message new/…/1700000001.1.h >tea.eml`,
		Flags: []cli.Flag{imagesFlag("show images; their servers learn that somebody reads the entry")},
		Action: cmdline.Run(app.Message, "ENTRY", func(f *cmdline.Flags) app.MessageOptions {
			if f.NArg() != 1 {
				f.Fail(cmdline.Usagef("name one ENTRY"))
			}
			return app.MessageOptions{Common: common(f, nil), Entry: f.Args().First(), Images: f.Bool("images")}
		}),
	}
}

func digestCommand() *cli.Command {
	return &cli.Command{
		Name:      "digest",
		Usage:     "write entries as one HTML document, or as a mail; mark nothing",
		ArgsUsage: "ENTRY…",
		Description: `ENTRY is a path or a unique name; "-" reads them from standard input.
lektor-view digest --html selects entries, starts this command, and marks them as read.

   lektor-view ls -o path since:1d | lektor-pages digest - >today.html`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Usage: "show at most `N` lines of each entry",
				Value: 4},
			&cli.BoolFlag{Name: "full", Usage: "include the whole content of each entry"},
			imagesFlag("show images; their servers learn that somebody reads the entry"),
			&cli.StringFlag{Name: "mail", Usage: "write a mail to `ADDRESS`, for sendmail -t"},
			cmdline.NulFlag(),
		},
		Action: cmdline.Run(app.Digest, "ENTRY", func(f *cmdline.Flags) app.DigestOptions {
			o := app.DigestOptions{
				Common: common(f, nil), Entries: f.Words(), Nul: cmdline.Nul(f.Context),
				Lines: f.Number("lines", 0, 10_000),
				Full:  f.Bool("full"), Images: f.Bool("images"), Mail: f.String("mail"),
			}
			if f.IsSet("mail") && o.Mail == "" {
				f.Fail(cmdline.Usagef("--mail needs an address"))
			}
			return o
		}),
	}
}
