package listener

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// PasswordVar is the environment variable for the password of [Save]. The command line
// reads it.
const PasswordVar = "LEKTOR_CLOUD_PASSWORD"

// SaveOptions are the options of [Save].
type SaveOptions struct {
	Common
	File         string // "-" for standard input
	Cloud        string // URL of an XML-RPC cloud; "" for the one that the document names
	User         string
	PasswordFile string // file with the password in its first line
	Password     string // used if there is no file
	DryRun       bool   // only print the target
}

// maxSave is the size of the largest document that is saved, in bytes.
const maxSave = fetch.DefaultMaxBytes

// Save stores a feed document in a cloud, and prints its URL there. If the document names
// the cloud, not the user, its address must be public or in Fetch.AllowPrivate.
func Save(ctx context.Context, o SaveOptions, s *cmdline.Streams) error {
	if o.PasswordFile != "" {
		b, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return err
		}
		line, _, _ := strings.Cut(string(b), "\n")
		o.Password = strings.TrimSuffix(line, "\r")
	}
	if o.Password == "" {
		return &cmdline.UsageError{Message: "no password is given", Hint: "put it into $" + PasswordVar +
			" or a file, --password-file"}
	}
	doc, err := readDocument(ctx, o.File, s)
	if err != nil {
		return err
	}
	target := o.Cloud
	if target == "" {
		if target = saveURL(doc); target == "" {
			return cmdline.Hint(fmt.Errorf("%s names no XML-RPC cloud", o.File), "name one with --cloud")
		}
	} else if rest, ok := strings.CutPrefix(target, "xmlrpc://"); ok {
		target = "http://" + rest
	}
	u, err := feedurl.Parse(target)
	if err != nil {
		return cmdline.Usagef("--cloud: %w", err)
	}
	if u.Scheme == "http" && !isLoopback(u) {
		s.Report.Warn("%s: the password is sent unencrypted", u)
	}
	if o.DryRun {
		s.Report.Info("%s: %s would be saved at %s as %s", o.File, humanize.Bytes(int64(len(doc))),
			feedurl.Public(u.String()), o.User)
		return nil
	}
	c := fetch.NewClient(o.Fetch)
	defer c.Close()
	where, err := rsscloud.Save(ctx, c, u.String(), o.Cloud != "", o.User, o.Password, string(doc))
	if isA[*httpmsg.PrivateError](err) {
		return errors.New(explain(err))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, where)
	return err
}

// readDocument reads a document from a file, or from standard input for "-".
func readDocument(ctx context.Context, path string, s *cmdline.Streams) ([]byte, error) {
	doc, err := s.ReadFile(ctx, path, maxSave)
	if err == nil && !utf8.Valid(doc) {
		return nil, cmdline.Hint(fmt.Errorf("%s: the document is not UTF-8, so XML-RPC would change it", path),
			"convert it with iconv, and change its declared encoding")
	}
	return doc, err
}

func isLoopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
}

// saveURL returns the URL of the XML-RPC cloud that a document names, or "".
func saveURL(document []byte) string {
	doc, err := feedconv.Parse(bytes.NewReader(document), feedconv.Options{})
	if err != nil {
		return ""
	}
	for _, fc := range doc.Clouds {
		if c := rsscloud.Cloud(fc); c.IsXMLRPC() {
			if u, err := c.URL(); err == nil {
				return u
			}
		}
	}
	return ""
}
