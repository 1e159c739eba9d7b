package fetcher

import (
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeddir"
)

// push records how a feed tells of its updates; see [feeddir.RecordPush].
func (r *Runner) push(hash string, feed *feedconv.Feed) error {
	var cloud, hub, self []string
	for _, c := range feed.Clouds {
		port := ""
		if c.Port != 0 {
			port = strconv.Itoa(c.Port)
		}
		cloud = append(cloud, strings.Join([]string{oneField(c.Domain), port, oneField(c.Path), oneField(c.RegisterProcedure), oneField(c.Protocol)}, "\t"))
	}
	for _, l := range feed.Links {
		switch strings.ToLower(l.Rel) {
		case "hub":
			hub = append(hub, oneField(l.Href))
		case "self":
			self = append(self, oneField(l.Href))
		}
	}
	return feeddir.RecordPush(r.Dir, hash, cloud, hub, self)
}

// oneField makes text fit for a field between tabs.
func oneField(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
}
