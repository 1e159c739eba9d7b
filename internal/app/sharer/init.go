package sharer

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/feedcmd"
	"github.com/lektordir/lektor/internal/feedurl"
)

// InitOptions are the options of [Init].
type InitOptions struct {
	Common
	Target string // directory or http(s) URL; "" with Renew keeps the target
	Name   string // name of this machine, for people
	Renew  bool   // new endpoint name, same set
}

var notInName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9-]+`) })

// Init makes the lektor-dir an endpoint, and sets its target. If there is no lektor-dir,
// Init creates one; its content then comes from the peers.
func Init(_ context.Context, o InitOptions, s *cmdline.Streams) error {
	if o.Target == "" && !o.Renew {
		return &cmdline.UsageError{Message: "init: no target is given", Hint: "a directory that all your machines have, or the URL of a server that supports PUT"}
	}
	with := feedcmd.CreateDir
	if o.Renew {
		with = feedcmd.OpenDir // it must exist already
	}
	r, err := o.open(s, with)
	if err != nil {
		return err
	}
	// Other programs keep files in etc, too; only etc/share is private.
	if err := errors.Join(os.MkdirAll(r.d.Join("etc"), 0o777), os.MkdirAll(r.path(), 0o700)); err != nil {
		return err
	}
	if err := r.lock(); err != nil {
		return err
	}
	defer r.end()
	old, err := r.setting(endpointFile)
	if err != nil {
		return err
	}
	target, headers, err := r.targetOf(strings.TrimSpace(o.Target))
	if err != nil {
		return err
	}
	name := strings.Trim(notInName().ReplaceAllString(o.Name, "-"), "-")
	if r.me = old; old == "" || o.Renew {
		if name == "" {
			name, _, _ = strings.Cut(old, "-")
		}
		random, err := random(o.Rand, 8)
		if err != nil {
			return err
		}
		r.me = strings.TrimPrefix(strings.ToLower(name[:min(len(name), 40)])+"-"+random, "-")
	}
	if headers != "" {
		if err := private(r.path(headersFile), []byte(headers)); err != nil {
			return err
		}
	}
	if target != "" {
		if err := r.line(target, targetFile); err != nil {
			return err
		}
	}
	if err := r.line(r.me, endpointFile); err != nil {
		return err
	}
	where := target
	if where == "" {
		where, _ = atomicfile.Line(r.path(targetFile))
	}
	s.Report.Info("this lektor-dir is the endpoint %s, and publishes below %s; now: lektor-share sync", r.me, where)
	return nil
}

// targetOf returns a target in the form of its file, and the header for the password in its
// URL. It creates a target directory.
func (r *run) targetOf(target string) (place, headers string, err error) {
	switch {
	case target == "":
		return "", "", nil
	case isURL(target):
		u, err := url.Parse(target)
		if err != nil {
			return "", "", err
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return "", "", &cmdline.UsageError{Message: "init: the URL must not have a query or fragment", Hint: "put tokens into " + r.path(headersFile)}
		}
		if u.User == nil {
			return target, "", nil
		}
		// The password belongs into the file of headers, not into that of the target.
		password, _ := u.User.Password()
		return feedurl.Public(target), "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\n", nil
	case strings.Contains(target, "://"):
		return "", "", &cmdline.UsageError{Message: "init: " + feedurl.Public(target) + " is neither a directory nor an http or https URL"}
	}
	if place, err = filepath.Abs(target); err != nil {
		return "", "", err
	}
	if strings.ContainsAny(place, "\n\r") {
		return "", "", &cmdline.UsageError{Message: "init: the name of the directory has a newline"}
	}
	return place, "", makeDir(place)
}
