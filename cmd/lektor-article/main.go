// Lektor-article finds the article of a page. Its manual is lektor-article(1).
package main

import (
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	app "github.com/lektordir/lektor/internal/app/article"
	"github.com/lektordir/lektor/internal/command"
)

// maxSeconds is how much of a processor's time a page may take. What takes more was
// made to.
const maxSeconds = 20

func main() {
	// Where there is no such limit, whoever started us has one.
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: maxSeconds, Max: maxSeconds})
	os.Exit(command.Main(newApp(), os.Args))
}

func newApp() *cli.App {
	return &cli.App{
		Name:      "lektor-article",
		Usage:     "the article of a page",
		ArgsUsage: " ",
		Description: `It reads a page from standard input. Lektor-fetch starts it for feeds with the
setting fulltext.

   curl -s https://example.org/post | lektor-article --url https://example.org/post`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "the page is from `URL`: links start there"},
			&cli.StringFlag{Name: "content-type", Usage: "the page's MIME type and charset are `TYPE`"},
			&cli.BoolFlag{Name: "json", Usage: "print an object of JSON: title, content, and refresh, where the page sends a browser"},
		},
		Action: command.Run(app.Extract, "", func(f *command.Flags) app.ExtractOptions {
			f.Fail(command.NoArgs(f.Context))
			return app.ExtractOptions{URL: f.String("url"), ContentType: f.String("content-type"), JSON: f.Bool("json")}
		}),
	}
}
