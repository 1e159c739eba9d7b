package fetchcmd

import (
	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/httpserver"
)

// ServerFlags returns the flags of servers, which listen on an address by default.
func ServerFlags(address string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "listen", Value: address, Usage: "listen on `ADDRESS`, a host and port"},
		&cli.StringFlag{Name: "cert", Usage: "use TLS with the certificate in `FILE`"},
		&cli.StringFlag{Name: "key", Usage: "use TLS with the key in `FILE`"},
		&cli.StringSliceFlag{Name: "trusted-proxy", Aliases: []string{"trust-proxy"},
			Usage: "trust X-Forwarded-For from proxies in the network `PREFIX`; may be repeated"},
		&cli.IntFlag{Name: "max-connections", Value: httpserver.DefaultMaxConns,
			Usage: "keep at most `N` connections open"},
	}
}

// Server returns the options from the flags of [ServerFlags], except --trusted-proxy.
func Server(f *cmdline.Flags) httpserver.Options {
	o := httpserver.Options{
		Address: f.String("listen"), Given: f.IsSet("listen"), Cert: f.String("cert"), Key: f.String("key"),
		MaxConns: f.Number("max-connections", 1, 0),
	}
	if (o.Cert == "") != (o.Key == "") {
		f.Fail(cmdline.Usagef("--cert and --key go together"))
	}
	return o
}
