// Package httpserver provides the part of a server that is exposed to strangers: sockets (also
// from systemd), TLS with renewed certificates, limits of time, size and connections, and
// the address of the caller.
package httpserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

const (
	// DefaultMaxConns is the default number of open connections; see [Limit].
	DefaultMaxConns = 512

	readHeader = 5 * time.Second
	readAll    = 30 * time.Second
	writeAll   = 40 * time.Second
	maxHeader  = 16 << 10
	// idleFor is how long a connection without a request stays open, see [Persistent].
	idleFor = 2 * time.Minute
	// maxStreams is the maximum number of requests at once on a connection of HTTP/2.
	maxStreams = 32
	// stopWithin is how long running requests may take after the server is stopped.
	stopWithin = 2 * time.Second
)

// Reporter prints messages for the user, one line each.
type Reporter interface {
	Warn(format string, args ...any)
	Info(format string, args ...any)
}

// Options say where a server listens.
type Options struct {
	// Address is the host and port to listen on, unless systemd passes a socket. Given is
	// true if the user set it.
	Address  string
	Given    bool
	Cert     string // file with a certificate, for TLS
	Key      string // file with its key
	MaxConns int    // see [Limit]
}

// Door holds the listening sockets.
type Door struct {
	sockets []net.Listener
	tls     *tls.Config // nil without TLS
	most    int
}

// Open opens the sockets. Connections wait until [Door.Serve] is called.
func Open(o Options, report Reporter) (*Door, error) {
	d := &Door{most: o.MaxConns}
	var err error
	if o.Cert != "" {
		if d.tls, err = Certificate(o.Cert, o.Key, report); err != nil {
			return nil, err
		}
	}
	if d.sockets, err = sockets(o, report); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		report.Warn("running as root is a risk: use a separate user, with a port from 1024 on or a socket from systemd")
	}
	return d, nil
}

// Addr returns the address of the first socket.
func (d *Door) Addr() net.Addr { return d.sockets[0].Addr() }

// Addrs returns the addresses of all sockets.
func (d *Door) Addrs() (list []net.Addr) {
	for _, s := range d.sockets {
		list = append(list, s.Addr())
	}
	return list
}

// TLS reports whether connections use TLS.
func (d *Door) TLS() bool { return d.tls != nil }

// Close closes the sockets. It may be called after Serve.
func (d *Door) Close() {
	for _, s := range d.sockets {
		_ = s.Close()
	}
}

// Serve serves connections while work runs. work is stopped when ctx ends or a socket
// fails; running requests then get a short time. Serve returns the error of work, or that
// of the socket.
func (d *Door) Serve(ctx context.Context, server *http.Server, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, socket := range d.sockets {
		serve := server.Serve
		if d.tls != nil {
			server.TLSConfig = d.tls
			serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		}
		go func() {
			if err := serve(Limit(socket, d.most)); !errors.Is(err, http.ErrServerClosed) {
				cancel(err)
			}
		}()
	}
	err := work(ctx)
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) // systemd also notices when the process ends
	stopping, stop := context.WithTimeout(context.Background(), stopWithin)
	defer stop()
	if server.Shutdown(stopping) != nil {
		_ = server.Close()
	}
	if cause := context.Cause(ctx); err == nil && cause != nil {
		if _, ok := errors.AsType[*net.OpError](cause); ok {
			err = cause
		}
	}
	return err
}

// Ready notifies systemd that the server is ready.
func Ready(report Reporter) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		report.Warn("systemd: %v", err)
	}
}

// sockets returns the listening sockets: those from systemd, or a new one at the address.
func sockets(o Options, report Reporter) ([]net.Listener, error) {
	passed, err := activation.Listeners()
	switch {
	case err != nil:
		return nil, fmt.Errorf("sockets from systemd: %w", err)
	case len(passed) == 0:
		l, err := net.Listen("tcp", o.Address)
		if err != nil {
			return nil, addressError{err}
		}
		return []net.Listener{l}, nil
	case o.Given:
		report.Warn("--listen is ignored: systemd passed a socket")
	}
	for i, l := range passed {
		if l == nil {
			return nil, fmt.Errorf("socket %d from systemd is not a listening stream socket", i+1)
		}
	}
	return passed, nil
}

// addressError is the error of an address at which the server cannot listen.
type addressError struct{ error }

func (e addressError) Unwrap() error { return e.error }

// Hint returns what the user can do, for package cmdline.
func (e addressError) Hint() string { return "choose another address or port with --listen" }

// Certificate returns a TLS configuration with a certificate from PEM files. The files are
// read again when they change, so renewal needs no restart. If they cannot be read then, the old
// certificate stays, with a warning for each change.
func Certificate(certFile, keyFile string, report Reporter) (*tls.Config, error) {
	var (
		mu            sync.Mutex
		current       *tls.Certificate
		known, warned []stamp.Stamp
	)
	load := func() error {
		reading := stamp.Rule{}.Begin(unix.AT_FDCWD, known, certFile, keyFile)
		if current != nil && !reading.Needed(known) {
			return nil
		}
		c, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			if current != nil && !slices.Equal(reading.Before, warned) {
				report.Warn("the old certificate is used, since the new one cannot be read: %v", err)
			}
			warned = reading.Before
			return err
		}
		current, known = &c, reading.End()
		return nil
	}
	if err := load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			mu.Lock()
			defer mu.Unlock()
			_ = load() // was warned of
			return current, nil
		},
	}, nil
}

// NewServer returns an HTTP server with limits: 16 KiB of header within 5 s, 30 s for a
// whole request, 40 s until the answer; a handler may extend them by an [http.ResponseController]. A
// panic of the handler is reported.
//
// Each connection serves one request of HTTP/1.1, unless the server is [Persistent]. A hub and a listener keep it
// so: they are called by many servers, each once and seldom again, so a connection that stays open is a slow one.
func NewServer(h http.Handler, report Reporter) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeader,
		ReadTimeout:       readAll,
		WriteTimeout:      writeAll,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(panics{report}, "", 0),
		ConnState:         noteIdle,
		Protocols:         new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	s.SetKeepAlivesEnabled(false)
	return s
}

// Persistent lets a connection of a server serve many requests, one after the other, or with TLS at once by HTTP/2.
// It is for servers whose callers come back. The limits of [NewServer] hold for each request. Connections of which
// the other end is gone are closed after two minutes, or sooner if there are too many, see [Limit].
func Persistent(s *http.Server) *http.Server {
	s.SetKeepAlivesEnabled(true)
	s.IdleTimeout = idleFor
	s.Protocols.SetHTTP2(true)
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: readAll, WriteByteTimeout: writeAll}
	return s
}

// panics passes on the reports of panics by net/http. Other reports are about connections
// that clients broke off.
type panics struct{ report Reporter }

func (p panics) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("panic")) {
		p.report.Warn("%s", termsafe.Brief(string(b)))
	}
	return len(b), nil
}

// Accepts reports whether a field such as Accept or Accept-Encoding has a value, without weight 0.
func Accepts(field, value string) bool {
	for part := range strings.SplitSeq(field, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), value) {
			q := strings.ReplaceAll(weight, " ", "")
			return !strings.HasPrefix(q, "q=0") || strings.Trim(q[len("q=0"):], ".0") != ""
		}
	}
	return false
}

// zippers are the unused compressors.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return z
}}

// Zip writes to w, compressed, what write writes.
func Zip(w io.Writer, write func(io.Writer) error) error {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(w)
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}

// Secure reports whether a client made a request by TLS. X-Forwarded-Proto is used only if the connection comes
// from a trusted proxy.
func Secure(r *http.Request, proxies []netip.Prefix) bool {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	addr, err := netip.ParseAddr(host)
	return r.TLS != nil ||
		r.Header.Get("X-Forwarded-Proto") == "https" && (err != nil || trusted(addr.Unmap(), proxies))
}

// trusted reports whether an address is that of a trusted proxy.
func trusted(a netip.Addr, proxies []netip.Prefix) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Peer returns the address of the client that made a request. X-Forwarded-For is used only
// if the connection comes from a trusted proxy; the client is the last address in it that
// is not a trusted proxy.
func Peer(r *http.Request, proxies []netip.Prefix) netip.Addr {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	addr, err := netip.ParseAddr(host)
	addr = addr.Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && (err != nil || trusted(addr, proxies)); i-- {
		next, perr := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if perr != nil {
			break
		}
		addr, err = next.Unmap(), nil
	}
	return addr
}
