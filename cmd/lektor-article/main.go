// Lektor-article finds the article of a page. Its manual is lektor-article(1).
package main

import (
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	app "github.com/lektordir/lektor/internal/app/article"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// maxSeconds limits the processor time of a page, in seconds. Only a page built as an attack
// needs more.
const maxSeconds = 20

func main() {
	// If the system refuses the limit, the caller's timeout remains.
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: maxSeconds, Max: maxSeconds})
	os.Exit(cmdline.Main(newApp(), os.Args))
}

func newApp() *cli.App {
	return &cli.App{
		Name:      "lektor-article",
		Usage:     "extract the article of a web page",
		ArgsUsage: " ",
		Description: `lektor-article reads an HTML page from standard input and prints its article.
lektor-fetch starts it for feeds whose setting fulltext is on.

   curl -s https://example.org/post | lektor-article --url https://example.org/post`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "resolve relative links against `URL`, the page's own"},
			&cli.StringFlag{Name: "content-type", Usage: "read the page by its header field Content-Type, `TYPE`"},
			&cli.BoolFlag{Name: "json",
				Usage: "print a JSON object: title, content, and refresh, the URL to which the page sends a browser"},
		},
		Action: cmdline.Run(app.Extract, "", func(f *cmdline.Flags) app.ExtractOptions {
			return app.ExtractOptions{URL: f.String("url"), ContentType: f.String("content-type"), JSON: f.Bool("json")}
		}),
	}
}
