// Lektor-pages writes entries of a lektor-dir as pages for a browser. Its manual is
// lektor-pages(1).
package main

import (
	"os"

	"github.com/urfave/cli/v2"

	app "github.com/lektordir/lektor/internal/app/pages"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
)

func main() { os.Exit(command.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return command.Completing(&cli.App{
		Name:  "lektor-pages",
		Usage: "entries of a lektor-dir as pages for a browser",
		Description: `Lektor-view has the same commands, and starts this program for them.

   lektor-pages html ~/www/news
   lektor-view html --newest 500 ~/www/news is:unread`,
		Flags:    []cli.Flag{command.DirFlag()},
		Commands: []*cli.Command{htmlCommand()},
	}, entries.Complete)
}

func privateFlag() cli.Flag {
	return &cli.BoolFlag{Name: "private", Usage: "show also what is in feeds that are not for others"}
}

func common(f *command.Flags, query []string) app.Common {
	return app.Common{Dir: command.Dir(f.Context), Query: query, Private: f.Bool("private")}
}

func htmlCommand() *cli.Command {
	return &cli.Command{
		Name:      "html",
		Usage:     "write a site to read entries in a browser",
		ArgsUsage: "DIR [QUERY]",
		Description: `Read entries are shown, too, unless the query says otherwise. Only pages that
change are written.

   lektor-pages html ~/www/news
   lektor-pages html --title Kernel ~/www/kernel folder:Linux since:30d`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "title", Usage: "call the site `TITLE`", Value: "lektor"},
			&cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Usage: "only the newest `N`", DefaultText: "all"},
			&cli.IntFlag{Name: "per-page", Usage: "put `N` entries on a page of a list", Value: 50},
			&cli.BoolFlag{Name: "images", Usage: "show images at once, which tells their servers that somebody reads"},
			privateFlag(),
		},
		Action: command.Run(app.HTML, "DIR", func(f *command.Flags) app.HTMLOptions {
			words := f.Words()
			o := app.HTMLOptions{
				Common: common(f, words[1:]), Output: words[0], Title: f.String("title"), PerPage: f.Number("per-page", 1, 10_000), Images: f.Bool("images"),
			}
			if f.IsSet("newest") {
				o.Newest = f.Number("newest", 1, 0)
			}
			if o.Output == "" {
				f.Fail(command.Usagef("the directory of the site has no name"))
			}
			return o
		}),
	}
}
