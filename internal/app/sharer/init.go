package sharer

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedcmd"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/lazy"
)

// InitOptions are those of [Init].
type InitOptions struct {
	Common
	Target string // a directory, or an http(s) URL; "" with Renew leaves it
	Name   string // of this machine, for people
	Renew  bool   // another endpoint, with the same set
}

var notInName = lazy.Regexp(`[^A-Za-z0-9-]+`)

// Init makes the lektor-dir an endpoint, and says where it meets others. On a machine
// that has no lektor-dir as yet it makes one: what is in it comes from the others.
func Init(_ context.Context, o InitOptions, s *command.Streams) error {
	if o.Target == "" && !o.Renew {
		return &command.UsageError{Message: "init: no target is given", Hint: "a directory that all your machines have, or the URL of a server that takes PUT"}
	}
	with := feedcmd.CreateDir
	if o.Renew {
		with = feedcmd.OpenDir // which is to have something to go on with
	}
	r, err := o.open(s, with)
	if err != nil {
		return err
	}
	// Other programs have theirs in etc, too; only what is shared is for the user alone.
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

// targetOf returns a target as its file holds it, and the headers that hold the password in
// its URL. A directory is made.
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
			return "", "", &command.UsageError{Message: "init: the URL of a directory has no query", Hint: "tokens belong into " + r.path(headersFile)}
		}
		if u.User == nil {
			return target, "", nil
		}
		// No password stands in a file that is not for it.
		password, _ := u.User.Password()
		return fetch.Public(target), "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\n", nil
	case strings.Contains(target, "://"):
		return "", "", &command.UsageError{Message: "init: " + fetch.Public(target) + " is neither a directory nor an http or https URL"}
	}
	if place, err = filepath.Abs(target); err != nil {
		return "", "", err
	}
	if strings.ContainsAny(place, "\n\r") {
		return "", "", &command.UsageError{Message: "init: the name of the directory has a newline"}
	}
	return place, "", makeDir(place)
}
