// Lektor-serve serves lektor-dirs to the readers of phones and other machines, by the Google Reader
// API. See lektor-serve(1).
package main

import (
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/app/server/page"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fetchcmd"
	"github.com/lektordir/lektor/internal/http/httpserver"
)

func main() {
	// Names of 100,000 entries take 5 MB; the rest is for answers. A request must not raise it.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(80 << 20)
	}
	// Most of the memory is garbage of answers. To collect it twice as often takes a tenth more time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	os.Exit(cmdline.Main(newApp(), os.Args))
}

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-serve",
		Usage: "serve lektor-dirs to browsers, and to feed readers by the Google Reader API",
		Description: `Example:
   lektor-serve passwd ann
   lektor-serve --listen 127.0.0.1:8091`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: server.DefaultListen, Usage: "listen on `ADDRESS`, a host and port"},
			&cli.StringFlag{Name: "base-path", Value: "/", Usage: "serve the API below `PATH`"},
			stateFlag(),
			&cli.StringFlag{Name: "cert", Usage: "use TLS with the certificate in `FILE`"},
			&cli.StringFlag{Name: "key", Usage: "use TLS with the key in `FILE`"},
			&cli.BoolFlag{Name: "insecure", Usage: "serve other machines without TLS"},
			&cli.StringSliceFlag{Name: "trusted-proxy",
				Usage: "trust X-Forwarded-For from proxies in the network `PREFIX`; may be repeated"},
			&cli.StringSliceFlag{Name: "allow",
				Usage: "let clients subscribe to feeds in the private network `PREFIX`; may be repeated"},
			&cli.StringFlag{Name: "categories", Value: "first",
				Usage: "show clients the `WHICH` folders of a feed: first or all"},
			&cli.IntFlag{Name: "max-connections", Value: httpserver.DefaultMaxConns,
				Usage: "keep at most `N` connections open"},
			&cli.BoolFlag{Name: "no-page", Usage: "serve the API alone, without the page for browsers"},
			&cli.StringFlag{Name: "images", Value: "ask",
				Usage: "let the page load images from elsewhere `WHEN`: never, ask (on a click) or always"},
			&cli.BoolFlag{Name: "keep-unread", Usage: "do not mark an entry as read when the page shows it"},
			&cli.BoolFlag{Name: "verbose", Usage: "report each request"},
		},
		Commands: []*cli.Command{passwdCommand(), tokensCommand()},
		Action: cmdline.Run(server.Serve, "", func(f *cmdline.Flags) server.Options {
			o := server.Options{
				Options: httpserver.Options{
					Address: f.String("listen"), Given: f.IsSet("listen"), Cert: f.String("cert"), Key: f.String("key"),
					MaxConns: f.Number("max-connections", 1, 0),
				},
				State: f.String("state"), BasePath: f.String("base-path"),
				TrustedProxies: fetchcmd.Prefixes(f, "trusted-proxy"),
				AllowPrivate:   fetchcmd.Prefixes(f, "allow"), Insecure: f.Bool("insecure"), Verbose: f.Bool("verbose"),
				AllCategories: f.String("categories") == "all",
			}
			images := f.String("images")
			if images != "never" && images != "ask" && images != "always" {
				f.Fail(cmdline.Usagef("--images is never, ask or always"))
			}
			if !f.Bool("no-page") {
				o.Page = page.New(page.Options{Images: images, KeepUnread: f.Bool("keep-unread")})
			}
			if !o.AllCategories && f.String("categories") != "first" {
				f.Fail(cmdline.Usagef("--categories is first or all"))
			}
			if (o.Cert == "") != (o.Key == "") {
				f.Fail(cmdline.Usagef("--cert and --key go together"))
			}
			return o
		}),
	}
}
