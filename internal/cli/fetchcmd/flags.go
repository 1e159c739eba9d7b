// Package fetchcmd holds the common parts of the command lines of programs that make requests.
package fetchcmd

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/urfave/cli/v2"
)

// FetchFlags returns the flags of commands that make requests. maxBytes is the default of the
// maximum document size, 0 means that of [fetch.DefaultConfig].
func FetchFlags(maxBytes int64) []cli.Flag {
	d := fetch.DefaultConfig()
	if maxBytes > 0 {
		d.MaxBytes, d.MaxDecoded = maxBytes, maxBytes
	}
	return []cli.Flag{
		&cli.IntFlag{Name: "per-host", Value: d.PerHost, Usage: "make `N` requests at once to one host"},
		&cli.DurationFlag{Name: "gap", Value: d.Gap, Usage: "wait for `TIME` between two requests to one host"},
		&cli.DurationFlag{Name: httpmsg.FlagTimeout, Value: d.Deadline, Usage: "stop an exchange after `TIME`"},
		&cli.Int64Flag{Name: httpmsg.FlagMaxBytes, Value: d.MaxBytes,
			Usage: "refuse documents of more than `N` bytes as transferred"},
		&cli.Int64Flag{Name: httpmsg.FlagMaxDecoded, Value: d.MaxDecoded,
			Usage: "refuse documents of more than `N` bytes after decompression"},
		&cli.IntFlag{Name: httpmsg.FlagMaxRedirects, Value: d.MaxRedirects, Usage: "follow at most `N` redirects"},
		&cli.Int64Flag{Name: httpmsg.FlagMaxHeader, Value: d.MaxHeader,
			Usage: "refuse response headers of more than `N` bytes"},
		&cli.StringSliceFlag{Name: "allow",
			Usage: "let public servers redirect to the private network `PREFIX`; may be repeated"},
		&cli.StringFlag{Name: "user-agent", Usage: "send `NAME` as the User-Agent"},
	}
}

// Fetch returns the configuration from the flags of [FetchFlags].
func Fetch(f *cmdline.Flags) fetch.Config {
	config := Asking(f)
	config.PerHost, config.Gap = f.Number("per-host", 1, 1000), f.Time("gap")
	config.MaxBytes, config.MaxDecoded, config.MaxHeader = f.Bytes(httpmsg.FlagMaxBytes),
		f.Bytes(httpmsg.FlagMaxDecoded), f.Bytes(httpmsg.FlagMaxHeader)
	config.Proxy = http.ProxyFromEnvironment
	return config
}

// Asking returns the configuration from the flags of every program that makes requests: --allow,
// --timeout, --max-redirects and --user-agent.
func Asking(f *cmdline.Flags) fetch.Config {
	config := fetch.Config{
		UserAgent:    cmp.Or(f.Given("user-agent").String("user-agent"), UserAgent(f.App.Name)),
		Deadline:     f.Given(httpmsg.FlagTimeout).Duration(httpmsg.FlagTimeout),
		MaxRedirects: f.Number(httpmsg.FlagMaxRedirects, 1, 0),
		AllowPrivate: Prefixes(f, "allow"),
	}
	if config.Deadline <= 0 || config.Deadline > time.Hour {
		f.Fail(cmdline.Usagef("--%s %v: it is a time such as 30s, up to an hour", httpmsg.FlagTimeout, config.Deadline))
	}
	return config
}

// Prefixes returns the value of a flag that names networks.
func Prefixes(f *cmdline.Flags, name string) []netip.Prefix {
	var out []netip.Prefix
	for _, v := range f.Given(name).StringSlice(name) {
		p, err := fetch.ParsePrefix(v)
		if err != nil {
			f.Fail(cmdline.Usagef("--%s %w", name, err))
		}
		out = append(out, p)
	}
	return out
}

// UserAgent returns the User-Agent of a program.
func UserAgent(name string) string {
	return strings.Replace(fetch.DefaultUserAgent, "lektor-fetch ", name+"/"+cmdline.Version()+" ", 1)
}
