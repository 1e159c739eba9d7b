// Lektor-share keeps subscriptions and marks equal on several machines. Its manual is
// lektor-share(1).
package main

import (
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	app "github.com/lektordir/lektor/internal/app/sharer"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fetchcmd"
	"github.com/lektordir/lektor/internal/read/entrystore"
)

func main() {
	// Most memory of a large sync is in use until its end, so little of it is garbage. A limit
	// below that would make the garbage collector run all the time.
	debug.SetGCPercent(15)
	os.Exit(cmdline.Main(newApp(), os.Args))
}

func newApp() *cli.App {
	return cmdline.Completing(&cli.App{
		Name:  "lektor-share",
		Usage: "keep subscriptions and marks equal on several machines",
		Description: `Each machine publishes documents in a directory that all machines have, or on a server,
and reads those of the others.

   lektor-share init ~/Sync/lektor
   lektor-fetch; lektor-share sync`,
		Flags: []cli.Flag{cmdline.DirFlag()},
		Commands: []*cli.Command{
			initCommand(), syncCommand(), applyCommand(), statusCommand(), peerCommand(), conflictsCommand(),
			resolveCommand(),
			publishCommand(), mergeCommand(), checkCommand(),
		},
	}, entrystore.Complete)
}

// maxBytes is the default size of the largest document that is fetched. It is enough for a
// million marks.
const maxBytes = 1 << 29

func common(f *cmdline.Flags) app.Common { return app.Common{Dir: cmdline.Dir(f.Context)} }

func fetching(f *cmdline.Flags) app.Common {
	o := common(f)
	o.Fetch = fetchcmd.Fetch(f)
	return o
}

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Usage: "apply all deletions and share all losses, even of most of what is here"}
}

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "share this lektor-dir",
		ArgsUsage: "DIR|URL",
		Description: `DIR is a directory that all machines have: replicated by Syncthing, on a mounted
server, or on a stick. URL is a directory on a server that supports PUT.

   lektor-share init ~/Sync/lektor
   lektor-share init --name laptop https://dav.example.com/lektor`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "the `NAME` of this machine", DefaultText: "the host name"},
			&cli.BoolFlag{Name: "leave", Usage: "remove the documents of this machine from the old target"},
			&cli.BoolFlag{Name: "renew",
				Usage: "become a new endpoint: for a lektor-dir that you copied or restored from a backup"},
		},
		Action: cmdline.Run(app.Init, "", func(f *cmdline.Flags) app.InitOptions {
			name := f.String("name")
			if name == "" && !f.Bool("renew") {
				name, _ = os.Hostname()
			}
			if f.NArg() > 1 {
				f.Fail(cmdline.Usagef("init: it takes one directory or URL"))
			}
			if f.Bool("leave") && f.Bool("renew") {
				// In a copied lektor-dir, the documents are those of another machine.
				f.Fail(cmdline.Usagef("init: --leave and --renew exclude each other"))
			}
			return app.InitOptions{Common: common(f), Target: f.Args().First(), Name: name, Renew: f.Bool("renew"),
				Leave: f.Bool("leave")}
		}),
	}
}

func syncCommand() *cli.Command {
	return &cli.Command{
		Name:  "sync",
		Usage: "record local changes, read the peers, apply their changes, and publish",
		Description: `Run it after lektor-fetch from a timer. If nothing changed, it publishes nothing.

   lektor-fetch; lektor-share sync -q`,
		Flags: append([]cli.Flag{
			yesFlag(), cmdline.DryRunFlag(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print no summary"},
		}, fetchcmd.FetchFlags(maxBytes)...),
		Action: cmdline.Run(app.Sync, "", func(f *cmdline.Flags) app.SyncOptions {
			return app.SyncOptions{Common: fetching(f), Yes: f.Bool("yes"), DryRun: f.Bool("dry-run"),
				Quiet: f.Bool("quiet")}
		}),
	}
}

func applyCommand() *cli.Command {
	return &cli.Command{
		Name:  "apply",
		Usage: "apply waiting changes of peers, such as marks of entries fetched since the last sync",
		Description: `It reads no peers and publishes nothing.

   lektor-fetch; lektor-share apply; lektor-view ls`,
		Flags: []cli.Flag{
			yesFlag(), cmdline.DryRunFlag(),
			&cli.StringSliceFlag{Name: "allow",
				Usage: "subscribe to feeds of peers in the private network `PREFIX`; may be repeated"},
		},
		Action: cmdline.Run(app.Apply, "", func(f *cmdline.Flags) app.ApplyOptions {
			o := app.ApplyOptions{Common: common(f), Yes: f.Bool("yes"), DryRun: f.Bool("dry-run")}
			o.Fetch.AllowPrivate = fetchcmd.Prefixes(f, "allow")
			return o
		}),
	}
}

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "print the peers, the number of waiting items, and the feeds that are not shared",
		Flags: []cli.Flag{
			cmdline.OutputFlag("print the peers in `FORMAT`: tsv, json, a field or a template"), cmdline.RawFlag(),
		},
		Action: cmdline.Run(app.Status, "", func(f *cmdline.Flags) app.StatusOptions {
			return app.StatusOptions{Common: common(f), Print: f.Printing()}
		}),
	}
}

func peerCommand() *cli.Command {
	return &cli.Command{
		Name:      "peer",
		Usage:     "add, remove or list peers that publish outside the target",
		ArgsUsage: "add NAME DIR|URL | rm NAME | ls",
		Description: `You need not add peers that are in the target directory.

   lektor-share peer add phone https://dav.example.com/lektor/phone-0a7903db47fb0ae8
   lektor-share peer ls`,
		Flags: []cli.Flag{
			cmdline.OutputFlag("print `FORMAT`: tsv, json, a field or a template"), cmdline.RawFlag(),
		},
		Action: cmdline.Run(app.Peer, "", func(f *cmdline.Flags) app.PeerOptions {
			return app.PeerOptions{Common: common(f), Words: f.Words(), Print: f.Printing()}
		}),
	}
}

func conflictsCommand() *cli.Command {
	return &cli.Command{
		Name:  "conflicts",
		Usage: "list changes that two machines made at once",
		Flags: []cli.Flag{
			cmdline.OutputFlag("print `FORMAT`: tsv (the default), json, a field or a template"), cmdline.RawFlag(),
		},
		Action: cmdline.Run(app.Conflicts, "", func(f *cmdline.Flags) app.ConflictsOptions {
			return app.ConflictsOptions{Common: common(f), Print: f.Printing()}
		}),
	}
}

func resolveCommand() *cli.Command {
	return &cli.Command{
		Name:      "resolve",
		Usage:     "settle a conflict",
		ArgsUsage: "ITEM ours|theirs [PEER] | --all ours|theirs [PEER]",
		Description: `ITEM is an item of conflicts, or the beginning of its name; - reads items from standard
input, one a line. If several peers lost, theirs needs the PEER.

   lektor-share resolve 80af8e84 theirs
   lektor-share conflicts -o item | lektor-share resolve - ours`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "settle all conflicts"},
			cmdline.DryRunFlag(),
		},
		Action: cmdline.Run(app.Resolve, "an item", func(f *cmdline.Flags) app.ResolveOptions {
			o := app.ResolveOptions{Common: common(f), All: f.Bool("all"), DryRun: f.Bool("dry-run")}
			words := f.Words()
			if !o.All && len(words) > 0 {
				o.Items, words = words[:1], words[1:]
			}
			if n := len(words); n < 1 || n > 2 {
				f.Fail(cmdline.Usagef("resolve: it takes an item or --all, ours or theirs, and perhaps a peer"))
				return o
			}
			if o.Which = words[0]; len(words) > 1 {
				o.Peer = words[1]
			}
			return o
		}),
	}
}

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "write the documents into a directory, or one to standard output",
		ArgsUsage: "DIR|-",
		Description: `DIR gets all documents, below the name of the endpoint; with -, --set chooses one.

   lektor-share publish /media/stick/lektor
   lektor-share publish --set state - | gzip > state.rss.gz`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "set", Usage: "write `WHAT` to standard output: subscriptions or state",
				DefaultText: "subscriptions"},
		},
		Action: cmdline.Run(app.Publish, "a directory, or -,", func(f *cmdline.Flags) app.PublishOptions {
			return app.PublishOptions{Common: common(f), To: f.Args().First(), Set: f.String("set")}
		}),
	}
}

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "merge one document of Simple Sharing into another",
		ArgsUsage: "LOCAL INCOMING",
		Description: `It prints the result and changes neither file. "-" is standard input. Items of INCOMING
without sx:sync are left out.

   lektor-share merge mine.opml theirs.opml > both.opml`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "merge exactly as the specification says"},
		},
		Action: cmdline.Run(app.Merge, "a document", func(f *cmdline.Flags) app.MergeOptions {
			if f.NArg() != 2 {
				f.Fail(cmdline.Usagef("merge: it takes two documents"))
			}
			return app.MergeOptions{Local: f.Args().Get(0), Incoming: f.Args().Get(1), Strict: f.Bool("strict")}
		}),
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "print the faults of documents of Simple Sharing",
		ArgsUsage: "DOCUMENT…",
		Description: `"-" is standard input.

   lektor-share check ~/Sync/lektor/*/*`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "treat warnings as failures"},
		},
		Action: cmdline.Run(app.Check, "a document", func(f *cmdline.Flags) app.CheckOptions {
			return app.CheckOptions{Documents: f.Words(), Strict: f.Bool("strict")}
		}),
	}
}
