package workers

import "sync"

// Cache holds values by a key. It is safe for concurrent use. The zero value is empty.
type Cache[V any] struct{ values sync.Map }

// Of returns the value of a key, which find finds the first time. Concurrent calls may each call find.
func (c *Cache[V]) Of(key string, find func() V) V {
	known, ok := c.values.Load(key)
	if !ok {
		known, _ = c.values.LoadOrStore(key, find())
	}
	v, _ := known.(V) // a nil error has no type
	return v
}
