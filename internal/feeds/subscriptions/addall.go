package subscriptions

import (
	"cmp"
	"errors"
	"slices"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// AddAllResult is the result of [AddAll].
type AddAllResult struct {
	Added   []*Subscription // new subscriptions; in a dry run, those that would be added
	Already []*Subscription // feeds that were subscribed to before; Hash is that of the subscription
}

// AddAllOptions are the options of [AddAll].
type AddAllOptions struct {
	DryRun bool // change nothing
	// Before, if not nil, is called for each new feed before it can be fetched. If it returns an
	// error, the feed is not subscribed to.
	Before func(s *Subscription) error
}

// AddAll durably subscribes to the feeds of a list, with few syncs. Their IDs must be set. Feeds that are
// subscribed to already, even under another URL, only get the categories that they lack. If some feeds
// fail, AddAll subscribes to the others and returns the joined errors.
func AddAll(w *commit.Writer, d *lektordir.Dir, list []*Subscription, o AddAllOptions) (AddAllResult, error) {
	var out AddAllResult
	var bad error
	byURL := ByURL(d)
	listed := map[string]bool{}
	for _, s := range list {
		s.Hash = lektordir.FeedHash(s.ID)
		if !feedfiles.Subscribed(d, s.Hash) {
			s.Hash = cmp.Or(byURL[s.ID], s.Hash)
		}
		if listed[s.Hash] {
			continue
		}
		listed[s.Hash] = true
		if feedfiles.Subscribed(d, s.Hash) {
			out.Already = append(out.Already, s)
			if !o.DryRun {
				bad = errors.Join(bad, addCategories(d, s.Hash, s.Categories))
			}
			continue
		}
		if !o.DryRun {
			added, err := Add(w, d, s, AddOptions{Unsynced: true})
			if err == nil && added && o.Before != nil {
				err = o.Before(s)
			}
			if err != nil {
				bad = errors.Join(bad, err)
				continue
			}
			if !added {
				out.Already = append(out.Already, s)
				continue
			}
		}
		out.Added = append(out.Added, s)
	}
	if o.DryRun {
		return out, bad
	}
	bad = errors.Join(bad, Finish(w, d, out.Added))
	out.Added = slices.DeleteFunc(out.Added, func(s *Subscription) bool { return !feedfiles.Subscribed(d, s.Hash) })
	return out, bad
}

func addCategories(d *lektordir.Dir, hash string, categories []string) error {
	have := settings.Categories(d, hash)
	all := slices.Clone(have)
	for _, c := range categories {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if len(all) == len(have) {
		return nil
	}
	return settings.SetCategories(d, hash, all, atomicfile.Write)
}
