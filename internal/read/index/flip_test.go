package index_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/entrystore"
)

// TestFlippedBytes changes random bytes of the index file and of its journal: lists may be wrong, but each query
// ends, and without the file they are those of the directory again. LEKTOR_INDEX_FLIPS sets the number of tries.
func TestFlippedBytes(t *testing.T) {
	tries := 12
	if n, err := strconv.Atoi(os.Getenv("LEKTOR_INDEX_FLIPS")); err == nil {
		tries = n
	}
	w := filled(t, 300)
	w.build()
	w.more(300, 320)
	w.clock = func() time.Time { return time.Now().Add(time.Hour) } // nothing is young
	// A process that ends soon leaves a journal.
	cmd := w.child()
	cmd.Env = append(cmd.Env, "LEKTOR_INDEX_DO=brief")
	w.must(cmd.Run())
	whole := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(w.file() + suffix)
		w.must(err)
		whole[suffix] = data
	}
	asked := append(questions(), question{"z17q", entrystore.Selection{All: true}}, question{"17", entrystore.Selection{All: true, Newest: 2}}, question{"title:3 or w4x", entrystore.Selection{All: true}})
	random := rand.New(rand.NewPCG(1, 3))
	for try := range tries {
		_, x := w.open()
		w.must(x.Drop())
		for suffix, data := range whole {
			data = append([]byte(nil), data...)
			if suffix == "" || try%2 == 0 {
				for range 1 + try%20 {
					data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
				}
			}
			w.must(os.WriteFile(w.file()+suffix, data, 0o666))
		}
		for _, q := range asked {
			w.ask(true, q.words, q.sel)
		}
	}
	_, x := w.open()
	w.must(x.Drop())
	w.again()
}
