// Lektor-import copies the data of another feed reader into a lektor-dir. Its manual is
// lektor-import(1).
package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/importer"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

func main() { os.Exit(cmdline.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-import",
		Usage: "move in from another feed reader",
		Description: `lektor-import copies subscriptions with names and folders, saved queries, and the read
state of entries. It makes no requests and writes to no file of the other reader.
"lektor-fetch import --from" starts it and then fetches the feeds.

   lektor-import newsboat
   lektor-import --dir feeds sfeed ~/.sfeed/sfeedrc`,
		Flags: []cli.Flag{cmdline.DirFlag()},
		Commands: []*cli.Command{
			reader("newsboat", "take over urls, cache.db and the killfile of newsboat", "[PATH [CACHE]]", `PATH is newsboat's directory, or its file urls (default: the first that newsboat would find).
CACHE is its database (default: the one that newsboat uses).

   lektor-import newsboat --dry-run`),
			reader("sfeed", "take over sfeedrc and the entries of sfeed", "[PATH [READ]]", `PATH is sfeedrc (default ~/.sfeed/sfeedrc). Its calls of feed are read, and nothing is
run. READ is the file in which sfeed_curses keeps the URLs of read entries (default:
$SFEED_URL_FILE).

   lektor-import sfeed ~/.sfeed/sfeedrc`),
			reader("r2e", "take over the configuration and the data of rss2email", "[PATH [DATA]]",
				`Mailed entries are marked as read.

   lektor-import r2e ~/.config/rss2email.cfg`),
			reader("feedly", "take over exports of Feedly, OPML and JSON", "FILE…",
				`   lektor-import feedly feedly.opml saved.json`),
			reader("inoreader", "take over exports of Inoreader, OPML and JSON", "FILE…",
				`   lektor-import inoreader subscriptions.xml starred.json`),
			reader("miniflux", "take over exports of Miniflux, OPML and JSON", "FILE…",
				`   lektor-import miniflux feeds.opml entries.json`),
		},
	}
}

// reader returns the command for one of [importer.Readers].
func reader(name, usage, args, description string) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Description: description,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "yes", Usage: "take over the commands of exec: and filter: without asking"},
			cmdline.DryRunFlag(),
		},
		Action: cmdline.Run(importer.Import, "", func(f *cmdline.Flags) importer.Options {
			return importer.Options{
				Dir: cmdline.Dir(f.Context), Reader: name, Paths: f.Words(), Yes: f.Bool("yes"),
				DryRun: f.Bool("dry-run"),
			}
		}),
	}
}
