package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedstate"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// changes counts the changes of settings.
type changes struct {
	subscriptions, settings int // taken back
	left                    int // the others, but for those that had the old value already
}

// takeBackChanges runs lektor-fetch, which takes back the changes of settings: a viewer does not write to src/.
// They are passed on standard input, where no other user can see them.
func (u *undoing) takeBackChanges(ctx context.Context, r record, dryRun bool) error {
	if len(u.done.Changes) == 0 {
		return nil
	}
	if err := atomicfile.Trusted(r.Path, "its changes of settings are not taken back"); err != nil {
		u.S.Report.Error("%v", err)
		u.changes.left = len(u.done.Changes)
		return nil
	}
	args := []string{"--dir", u.Dir.Path(), "set", "--undo", fmt.Sprintf("--dry-run=%t", dryRun), "-"}
	var out bytes.Buffer
	s := *u.S
	s.Out = &out
	err := cmdline.RunBeside(ctx, "lektor-fetch", args, strings.NewReader(u.done.Lines()), &s)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		u.firstErr = errors.New("some settings were not taken back")
		if !errors.As(err, new(*cmdline.ExitError)) {
			u.firstErr = err
		}
	}
	u.count(out.String())
	return nil
}

// count counts the outcomes that lektor-fetch has printed, a line each, and reports those of which the user must know.
// The settings of a subscription that was ended or begun count as one with it; its url is the first of them.
func (u *undoing) count(out string) {
	made := map[string]feedstate.Change{}
	for _, c := range u.done.Changes {
		made[c.Hash+"\t"+c.Key] = c
	}
	whole := map[string]bool{} // feeds with such a subscription
	for line := range strings.Lines(out) {
		outcome, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		c, o := made[of], feedstate.Outcome(outcome)
		counted := whole[c.Hash]
		if c.Key == "url" && (c.Old == "" || c.New == "") && o != feedstate.Same {
			whole[c.Hash] = true
		}
		switch {
		case o == feedstate.Restored && c.Key == "id":
			u.S.Report.Warn("%s: rm --purge deleted its entries, which are not back: the next fetch delivers those that the feed still has", u.title(c.Hash))
		case o == feedstate.Same, counted, c.Key == "id":
		case o != feedstate.Restored:
			u.changes.left++
			u.skipSetting(c, o)
		case whole[c.Hash]:
			u.changes.subscriptions++
		default:
			u.changes.settings++
		}
	}
}

// skipSetting reports a setting that stays.
func (u *undoing) skipSetting(c feedstate.Change, o feedstate.Outcome) {
	why := "it was changed since; it is not changed"
	switch o {
	case feedstate.Refused:
		why = "the journal has a command that lektor-fetch does not know as yours; it is not set"
	case feedstate.Lost:
		why = "its old value was removed from the journal after 30 days; it is not changed"
	}
	u.S.Report.Error("%s: %s: %s", u.title(c.Hash), termsafe.Line(c.Key), why)
}

// title returns the title of a feed.
func (u *undoing) title(hash string) string {
	if f, _ := u.Dir.ReadFeed(hash); f != nil {
		return f.Title()
	}
	return fmt.Sprintf("feed %s", hash)
}
