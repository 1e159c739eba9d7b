// Package work does what the user has requested of the lektor-dir: changes, in the order of the keys, and tasks beside
// them. It does not end with the screen, see [Work.Drain].
package work

import (
	"context"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/lektordir"
)

// Disk is what work needs of the lektor-dir. Its methods may take long, and are called concurrently, but those that
// change something one after the other.
type Disk interface {
	// Mark sets and clears flags as one command that can be undone, and calls done after each entry. It
	// returns the entries with their new names, also with an error. If it sets T, it sets that alone, also of the
	// older versions that the entries hide.
	Mark(ctx context.Context, refs []lektordir.Ref, set, unset string, done func()) ([]lektordir.Ref, error)
	// Undo takes back the last command of any program that marked entries or changed subscriptions. It returns a
	// message for the user, and the entries with their new names.
	Undo(ctx context.Context) (message string, moved []lektordir.Ref, err error)
	// Save saves a query under a name.
	Save(ctx context.Context, name, query string) error
	// Remember saves a setting of the screen by a name without '='; "" removes it.
	Remember(ctx context.Context, name, value string) error
	// Fetcher runs lektor-fetch on the lektor-dir with arguments, and with in as its standard
	// input. It calls line for each line of the output, and returns the messages. If ctx ends, it
	// sends SIGTERM, and waits. A failure of the started program is an [*exec.ExitError].
	Fetcher(ctx context.Context, in string, args []string, line func(string)) (messages []string, err error)
	// Download saves an enclosure below a directory as lektor-view save does, and returns its path.
	// It calls progress repeatedly; total is -1 if it is unknown.
	Download(ctx context.Context, ref lektordir.Ref, url, dir string, progress func(have, total int64)) (string, error)
}

// Env is what work has of its surroundings. It does not change.
type Env struct {
	*part.Env
	Disk Disk
	// Screen has the settings of the screen, and Fetcher and Dir are the paths of lektor-fetch and of the lektor-dir.
	Screen       *values.Values
	Fetcher, Dir string
	// Folders returns the lines of folders that a line may become.
	Folders func(line string) []string
	// Play plays a file that belongs to an entry.
	Play func(ref lektordir.Ref, path string) part.Effects
}

// Work is all that is being done.
type Work struct {
	*Env
	Queue
	Tasks     Tasks
	Downloads Downloads
	Fetching  Fetching
}

// New returns work of which nothing has begun.
func New(env *Env) *Work {
	w := &Work{Env: env, Queue: Queue{Env: env}, Tasks: Tasks{Env: env}}
	w.Downloads.Work, w.Fetching.Work = w, w
	return w
}

// TakeBack takes back the last command, or the last change of a subscription if that was later.
func (w *Work) TakeBack(part.Given) part.Effects {
	begun := w.Tasks.Of(addTask)
	w.Add(func() (string, []lektordir.Ref, error) {
		for _, t := range begun {
			<-t.ended
		}
		return w.Disk.Undo(w.Ctx)
	}, nil)
	return nil
}
