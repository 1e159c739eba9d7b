package viewer

import (
	"cmp"
	"context"
	"slices"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// thread is the entries of a list, oldest first, as trees: an entry, its other versions, and the
// replies to it. Entries are named by their index.
type thread struct {
	list   []*entrystore.Record
	parent []int  // the entry that is answered, or the newest version; -1 for the first of a thread
	older  []bool // the entry is another version of its parent
}

// byThread sorts entries by thread, threads by their newest entry, and replies by date below what
// they answer. down puts the newest thread first. depth is the number of answered entries above a
// reply.
func byThread(ctx context.Context, list []*entrystore.Record, down bool) (sorted []*entrystore.Record,
	depth map[*entrystore.Record]int, err error) {
	slices.SortFunc(list, entrystore.ByDate)
	ids := make([]string, len(list))
	err = workers.ForEach(ctx, len(list), func(i int) {
		ids[i] = list[i].Get(lektordir.FieldID | lektordir.FieldInReplyTo).ID
		list[i].Forget()
	})
	if err != nil {
		return nil, nil, err
	}
	t := &thread{list, make([]int, len(list)), make([]bool, len(list))}
	t.join(ids)
	t.cut()
	sorted, depth = t.walk(down)
	return sorted, depth, nil
}

// join finds the parents. An id is looked for in the feed of the reply first, then in all feeds. It
// means the newest entry that has it.
func (t *thread) join(ids []string) {
	newest := map[[2]string]int{} // by feed, or "", and id
	for i, r := range t.list {
		newest[[2]string{r.Ref.Feed, ids[i]}] = i
		newest[[2]string{"", ids[i]}] = i
	}
	for i, r := range t.list {
		t.parent[i] = -1
		if at := newest[[2]string{r.Ref.Feed, ids[i]}]; at != i && ids[i] != "" {
			t.parent[i], t.older[i] = at, true
			continue
		}
		for _, to := range r.InReplyTo() {
			at, ok := newest[[2]string{r.Ref.Feed, to.Ref}]
			if !ok {
				at, ok = newest[[2]string{"", to.Ref}]
			}
			if ok && at != i {
				t.parent[i] = at
				break
			}
		}
	}
}

// cut makes an entry of each cycle, which only a faulty feed has, the first of its thread.
func (t *thread) cut() {
	walk := make([]int, len(t.list)) // the number, from 1, of the walk that came to the entry
	for i := range t.list {
		for at := i; at >= 0 && walk[at] == 0; {
			walk[at] = i + 1
			next := t.parent[at]
			if next >= 0 && walk[next] == i+1 {
				t.parent[next] = -1
				break
			}
			at = next
		}
	}
}

// walk returns the entries in the order of their threads, and the depths of replies.
func (t *thread) walk(down bool) (sorted []*entrystore.Record, depth map[*entrystore.Record]int) {
	// The last child comes first: the other versions, newest first, then the replies.
	children := make([][]int, len(t.list))
	for _, older := range []bool{false, true} {
		for i := range t.list {
			if !older {
				i = len(t.list) - 1 - i
			}
			if p := t.parent[i]; p >= 0 && t.older[i] == older {
				children[p] = append(children[p], i)
			}
		}
	}
	type placed struct {
		entries []*entrystore.Record
		newest  int
	}
	var threads []placed
	depth = map[*entrystore.Record]int{}
	for root, p := range t.parent {
		if p >= 0 {
			continue
		}
		var th placed
		for open := []int{root}; len(open) > 0; {
			i := open[len(open)-1]
			open = append(open[:len(open)-1], children[i]...)
			r := t.list[i]
			th.entries, th.newest = append(th.entries, r), max(th.newest, i)
			if p := t.parent[i]; p >= 0 {
				depth[r] = depth[t.list[p]]
				if !t.older[i] {
					depth[r]++
				}
			}
		}
		threads = append(threads, th)
	}
	slices.SortFunc(threads, func(a, b placed) int { return cmp.Compare(a.newest, b.newest) })
	if down {
		slices.Reverse(threads)
	}
	for _, th := range threads {
		sorted = append(sorted, th.entries...)
	}
	return sorted, depth
}
