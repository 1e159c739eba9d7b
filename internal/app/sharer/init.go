package sharer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// InitOptions are the options of [Init].
type InitOptions struct {
	Common
	Target string // directory or http(s) URL; "" with Renew keeps the target
	Name   string // name of this machine, for people
	Renew  bool   // new endpoint name, same set
	Leave  bool   // if the target changes, remove the documents from the old one; not with Renew
}

// Init makes the lektor-dir an endpoint, and sets its target. If there is no lektor-dir,
// Init creates one; its content then comes from the peers.
func Init(ctx context.Context, o InitOptions, s *cmdline.Streams) error {
	if o.Target == "" && !o.Renew {
		return &cmdline.UsageError{Message: "init: no target is given",
			Hint: "a directory that all your machines have, or the URL of a server that supports PUT"}
	}
	with := cmdline.CreateDir
	if o.Renew {
		with = cmdline.OpenDir // it must exist already
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
	target, headers, err := r.targetOf(strings.TrimSpace(o.Target))
	if err != nil {
		return err
	}
	old, moves := r.home(), peerName(r.me) && target != "" && r.target != "" && target != r.target
	if moves && o.Leave {
		// If this is killed, the next sync writes the documents again.
		if err := atomicfile.Remove(r.path(publishedFile)); err != nil {
			return err
		}
		if err := r.transportAt(old).clear(ctx); err != nil {
			return err
		}
	}
	stay := moves && r.record("../"+publishedFile).Get("place") == digest([]byte(old))
	if r.me == "" || o.Renew {
		if r.me, err = newEndpoint(o.Name, r.me, o.Rand); err != nil {
			return err
		}
	}
	err = r.setHeaders(target, headers)
	if err == nil && target != "" {
		err = r.write([]byte(target+"\n"), targetFile)
	}
	if err == nil {
		err = r.write([]byte(r.me+"\n"), endpointFile)
	}
	if err != nil {
		return err
	}
	s.Report.Info("this lektor-dir is the endpoint %s, and publishes below %s; now: lektor-share sync", r.me,
		cmp.Or(target, r.target, "(no target; lektor-share init DIR|URL sets one)"))
	if stay {
		s.Report.Info("the documents in %s stay there: remove them when no machine reads them any more, or next time use --leave", feedurl.Public(old))
	}
	return nil
}

// newEndpoint returns a new name for an endpoint: the name of the machine, or else the beginning of the
// old name, and a random number.
func newEndpoint(name, old string, from io.Reader) (string, error) {
	name = strings.Join(strings.FieldsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}), "-")
	if name == "" {
		name, _, _ = strings.Cut(old, "-")
	}
	random, err := random(from, 8)
	return strings.TrimPrefix(strings.ToLower(name[:min(len(name), 40)])+"-"+random, "-"), err
}
