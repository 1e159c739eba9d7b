// Lektor-import moves what another feed reader keeps into a lektor-dir. Its manual is
// lektor-import(1).
package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/importer"
	"github.com/lektordir/lektor/internal/command"
)

func main() { os.Exit(command.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-import",
		Usage: "move in from another feed reader",
		Description: `Subscriptions with names and folders, saved queries, and what was read. Nothing is
fetched, and nothing of the other reader is written to. lektor-fetch import --from
does this, and then fetches.

   lektor-import newsboat
   lektor-import --dir feeds sfeed ~/.sfeed/sfeedrc`,
		Flags: []cli.Flag{command.DirFlag()},
		Commands: []*cli.Command{
			reader("newsboat", "urls and cache.db of newsboat", "[PATH [CACHE]]", `PATH is newsboat's directory, or its file urls; without it, where newsboat looks.

   lektor-import newsboat --dry-run`),
			reader("sfeed", "sfeedrc of sfeed", "[PATH [READ]]", `The calls of feed in it are read, and nothing is run. READ is the file of URLs that
sfeed_curses keeps, else $SFEED_URL_FILE.

   lektor-import sfeed ~/.sfeed/sfeedrc`),
			reader("r2e", "configuration and data of rss2email", "[PATH [DATA]]", `What was mailed is marked as read.

   lektor-import r2e ~/.config/rss2email.cfg`),
			reader("feedly", "exports of Feedly, OPML and JSON", "FILE…", `   lektor-import feedly feedly.opml saved.json`),
			reader("inoreader", "exports of Inoreader, OPML and JSON", "FILE…", `   lektor-import inoreader subscriptions.xml starred.json`),
			reader("miniflux", "exports of Miniflux, OPML and JSON", "FILE…", `   lektor-import miniflux feeds.opml entries.json`),
		},
	}
}

// reader is the command for one of [importer.Readers].
func reader(name, usage, args, description string) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Description: description,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "yes", Usage: "take commands over, those of exec: and filter:, without asking"},
			&cli.BoolFlag{Name: "dry-run", Usage: "change nothing, only tell what would be done"},
		},
		Action: command.Run(importer.Import, "", func(f *command.Flags) importer.Options {
			return importer.Options{
				Dir: command.Dir(f.Context), Reader: name, Paths: f.Words(), Yes: f.Bool("yes"), DryRun: f.Bool("dry-run"),
			}
		}),
	}
}
