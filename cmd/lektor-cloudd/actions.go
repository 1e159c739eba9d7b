package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/app/listener"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/lektordir"
)

// stopWithin is how long requests may take that are being answered when the
// listener is stopped.
const stopWithin = 2 * time.Second

func listen(ctx context.Context, o listenOptions, s *command.Streams) error {
	d, err := command.OpenDir(o.dir, nil)
	if err != nil {
		return err
	}
	unlock, err := listener.Lock(d)
	if err != nil {
		return err
	}
	defer unlock()
	var conf *tls.Config
	if o.cert != "" {
		if conf, err = listener.Certificate(o.cert, o.key); err != nil {
			return err
		}
	}
	listeners, err := listener.Activated()
	if err != nil {
		return err
	}
	if len(listeners) == 0 {
		l, err := net.Listen("tcp", o.listen)
		if err != nil {
			return command.Hint(err, "--listen takes another address or port")
		}
		listeners = []net.Listener{l}
	} else if o.listenSet {
		s.Report.Warn("--listen is ignored: systemd passed a socket")
	}
	public(&o, listeners[0].Addr(), conf != nil, s)

	l := listener.New(d, s.Report, listener.Options{
		Public: o.public, Fetch: o.fetch, Cooldown: o.cooldown, TrustedProxies: o.proxies, Verbose: o.verbose,
		Ready: func() {
			if err := listener.Tell("READY=1"); err != nil {
				s.Report.Warn("systemd: %v", err)
			}
		},
	})
	defer l.Close()
	// Whoever calls while it starts finds his callback.
	if err := l.Load(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := l.Server()
	for _, nl := range listeners {
		if o.verbose {
			s.Report.Info("listening on %s", nl.Addr())
		}
		nl = listener.Limit(nl, o.maxConns)
		if conf != nil {
			nl = tls.NewListener(nl, conf)
		}
		go func() {
			if err := server.Serve(nl); !errors.Is(err, http.ErrServerClosed) {
				cancel(err)
			}
		}()
	}
	err = l.Run(ctx)
	_ = listener.Tell("STOPPING=1") // it is told by our end as well
	stopping, stop := context.WithTimeout(context.Background(), stopWithin)
	defer stop()
	if server.Shutdown(stopping) != nil {
		_ = server.Close()
	}
	if cause := context.Cause(ctx); err == nil && cause != nil {
		var op *net.OpError
		if errors.As(cause, &op) {
			err = cause
		}
	}
	return err
}

// public finds out where hubs reach us, and says what to do when they do not.
func public(o *listenOptions, addr net.Addr, tls bool, s *command.Streams) {
	if o.public == nil {
		machine, _ := net.InterfaceAddrs()
		o.public = listener.PublicURL(addr, tls, machine)
	}
	const hint = "let a proxy or the router forward to %s, and give --public-url with the address that the world sees"
	if o.public == nil {
		s.Report.Warn("this machine has no public address: no hub can reach it, so none is asked, and feeds are fetched on their schedule as before")
		s.Report.Info("hint: "+hint, addr)
		return
	}
	host := o.public.Hostname()
	ip, err := netip.ParseAddr(host)
	allowed := false
	for _, p := range o.fetch.AllowPrivate {
		allowed = allowed || err == nil && p.Contains(ip.Unmap())
	}
	if (err == nil && fetch.Private(ip) || host == "localhost") && !allowed {
		s.Report.Warn("%s is a private address: hubs elsewhere cannot reach it", o.public)
		s.Report.Info("hint: "+hint, addr)
	}
}

type statusOptions struct {
	dir, format string
	raw         bool
	now         time.Time
}

const statusFormat = `{{.state | default "new" | pad 13}} {{.protocol | pad 10}} {{.expires | date "2 Jan 15:04" | pad 12}} {{.notified | date "2 Jan 15:04" | pad 12}} {{.url}}{{if .hub}} at {{.hub}}{{end}}{{if .error}}: {{.error}}{{end}}`

func statusColumns() []command.Column[listener.Status] {
	type S = listener.Status
	return []command.Column[S]{
		{Name: "hash", Verbatim: true, Get: func(s S) any { return s.Hash }},
		{Name: "url", Get: func(s S) any { return s.URL }},
		{Name: "title", Get: func(s S) any { return s.Name }},
		{Name: "hub", Get: func(s S) any { return s.Hub }},
		{Name: "protocol", Get: func(s S) any { return s.Protocol }},
		{Name: "state", Get: func(s S) any { return cmp.Or(s.State.State, "new") }},
		{Name: "expires", Get: func(s S) any { return s.Expires }},
		{Name: "next", Get: func(s S) any { return s.Next }},
		{Name: "notified", Get: func(s S) any { return s.Notified }},
		{Name: "failures", Get: func(s S) any { return s.Failures }},
		{Name: "error", Get: func(s S) any { return s.Error }},
	}
}

func status(ctx context.Context, o statusOptions, s *command.Streams) error {
	d, err := command.OpenDir(o.dir, nil)
	if err != nil {
		return err
	}
	p, err := command.NewPrinter(s.Out, command.PrinterOptions{Format: cmp.Or(o.format, statusFormat), Raw: o.raw}, statusColumns())
	if err != nil {
		return err
	}
	list, err := listener.ReadStatus(d, o.now)
	if err != nil {
		return err
	}
	for _, st := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.Print(st); err != nil {
			return err
		}
	}
	return p.Flush()
}

type pingOptions struct {
	dir, cloud string
	args       []string
	nul        bool
	fetch      fetch.Config
}

func ping(ctx context.Context, o pingOptions, s *command.Streams) error {
	var named *listener.Target
	if o.cloud != "" {
		t, err := listener.CloudTarget(o.cloud)
		if err != nil {
			return command.Usagef("--cloud: %w", err)
		}
		named = &t
	}
	// An author need not have a lektor-dir.
	d, err := lektordir.Open(o.dir, nil)
	if err != nil {
		d = nil
	}
	c := fetch.NewClient(o.fetch)
	defer c.Close()
	for arg, err := range command.ReadArgs(o.args, s.In, o.nul) {
		if err != nil {
			return err
		}
		u, err := fetch.ParseURL(arg)
		if err != nil {
			s.Report.Print(command.Hint(err, "ping takes the URL of a feed, as the cloud knows it"))
			continue
		}
		feed := u.String()
		u.User = nil // a password is for the feed's server, not for messages
		targets := []listener.Target{}
		if named != nil {
			targets = append(targets, *named)
		} else if targets, err = listener.Targets(ctx, c, d, feed); err != nil {
			var none *listener.NoCloudError
			if errors.As(err, &none) {
				err = command.Hint(err, "name a cloud with --cloud")
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.Report.Print(err)
			continue
		}
		for _, t := range targets {
			msg, err := t.Ping(ctx, c, feed)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				s.Report.Print(err)
			case msg == "":
				s.Report.Info("%s: told %s", u, t.Name)
			default:
				s.Report.Info("%s: told %s: %s", u, t.Name, msg)
			}
		}
	}
	return nil
}

type saveOptions struct {
	file, cloud, user      string
	passwordFile, password string
	fetch                  fetch.Config
}

// maxSave is the largest document that is saved.
const maxSave = fetch.DefaultMaxBytes

func save(ctx context.Context, o saveOptions, s *command.Streams) error {
	if o.passwordFile != "" {
		b, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return err
		}
		line, _, _ := strings.Cut(string(b), "\n")
		o.password = strings.TrimSuffix(line, "\r")
	}
	if o.password == "" {
		return &command.UsageError{Message: "the password is missing", Hint: "put it into $" + passwordVar + " or a file, --password-file"}
	}
	in := s.In
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	doc, err := io.ReadAll(io.LimitReader(in, maxSave+1))
	if err != nil {
		return err
	}
	if len(doc) > maxSave {
		return fmt.Errorf("%s: more than %d bytes", o.file, maxSave)
	}
	if !utf8.Valid(doc) {
		return command.Hint(fmt.Errorf("%s: it is not UTF-8, and XML-RPC would change it", o.file), "convert it, with iconv, and what it says of its encoding")
	}
	target := o.cloud
	if target == "" {
		if target = listener.SaveURL(doc); target == "" {
			return command.Hint(fmt.Errorf("%s names no cloud that speaks XML-RPC", o.file), "name one with --cloud")
		}
	} else if rest, ok := strings.CutPrefix(target, "xmlrpc://"); ok {
		target = "http://" + rest
	}
	u, err := fetch.ParseURL(target)
	if err != nil {
		return command.Usagef("--cloud: %w", err)
	}
	if u.Scheme == "http" && !loopback(u) {
		s.Report.Warn("%s: the password goes over the network as it is", u)
	}
	c := fetch.NewClient(o.fetch)
	defer c.Close()
	where, err := rsscloud.Save(ctx, c, u.String(), o.user, o.password, string(doc))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, where)
	return err
}

func loopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
}
