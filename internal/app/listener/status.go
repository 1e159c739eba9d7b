package listener

import (
	"cmp"
	"context"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// FeedStatus is a feed and its registration.
type FeedStatus struct {
	Hash string
	URL  string // URL of the feed
	Name string
	push.Registration
}

// ReadStatus returns the feeds that have offers or a registration. The state is empty
// before the first request, and "expired" after the end of a registration.
func ReadStatus(d *lektordir.Dir, now time.Time) ([]FeedStatus, error) {
	hashes, err := d.FeedHashes()
	if err != nil {
		return nil, err
	}
	var out []FeedStatus
	for _, h := range hashes {
		s := FeedStatus{Hash: h, Registration: push.ReadRegistration(d, h), URL: subscriptions.PublicURL(d, h)}
		if s.Hub == "" {
			if s.URL == "" {
				continue
			}
			_, list, bad := readOffers(d, h, s.URL)
			switch {
			case len(list) > 0:
				s.Hub, s.Protocol = list[0].hub, list[0].protocol
			case bad != nil:
				s.State, s.Error = Failed, termsafe.Brief(bad.Error())
			default:
				continue
			}
		}
		if s.State == Registered && !s.Expires.IsZero() && now.After(s.Expires) {
			s.State = "expired"
		}
		if s.URL != "" && settings.Paused(d, h) {
			s.State = "paused"
		}
		if f, err := d.ReadFeed(h); err == nil {
			s.Name = f.Title()
			s.URL = cmp.Or(s.URL, f.ID)
		}
		out = append(out, s)
	}
	return out, nil
}

// StatusOptions are the options of [Status].
type StatusOptions struct {
	Common
	Format string // see [cmdline.PrinterOptions]; "" for one line a feed
	Raw    bool   // do not clean the text of feeds and hubs for the terminal
}

const statusFormat = `{{.state | default "new" | pad 13}} {{.protocol | pad 10}} {{.expires | date "2 Jan 15:04" | pad 12}} {{.notified | date "2 Jan 15:04" | pad 12}} {{.url}}{{if .hub}} at {{.hub}}{{end}}{{if .error}}: {{.error}}{{end}}`

var statusColumns = []cmdline.Column[FeedStatus]{
	{Name: "hash", Verbatim: true, Get: func(s FeedStatus) any { return s.Hash }},
	{Name: "url", Get: func(s FeedStatus) any { return s.URL }},
	{Name: "title", Get: func(s FeedStatus) any { return s.Name }},
	{Name: "hub", Get: func(s FeedStatus) any { return s.Hub }},
	{Name: "protocol", Get: func(s FeedStatus) any { return s.Protocol }},
	{Name: "state", Get: func(s FeedStatus) any { return cmp.Or(s.State, "new") }},
	{Name: "expires", Get: func(s FeedStatus) any { return s.Expires }},
	{Name: "next", Get: func(s FeedStatus) any { return s.Next }},
	{Name: "notified", Get: func(s FeedStatus) any { return s.Notified }},
	{Name: "failures", Get: func(s FeedStatus) any { return s.Failures }},
	{Name: "error", Get: func(s FeedStatus) any { return s.Error }},
}

// Status prints the feeds with their hub and the state of the registration.
func Status(_ context.Context, o StatusOptions, s *cmdline.Streams) error {
	d, err := cmdline.OpenDir(o.Dir, nil)
	if err != nil {
		return err
	}
	format := cmdline.PrinterOptions{Format: o.Format, Raw: o.Raw}
	return cmdline.Records(s.Out, format, statusFormat, statusColumns, func(p *cmdline.Printer[FeedStatus]) error {
		list, err := ReadStatus(d, time.Now())
		if err != nil {
			return err
		}
		return p.PrintAll(list)
	})
}
