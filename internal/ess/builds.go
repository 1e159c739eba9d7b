package ess

import "slices"

// builds remembers the latest build time of each of many feeds, in some twelve bytes for
// each: a table of numbers that have a part of the [hash] of a feed and the minute. The
// zero value is ready for use. Of ten million feeds two are taken for one about once in
// two runs, which matters if one of them is among the newest.
type builds struct {
	parts [1 << partBits]builtPart
	n     int
}

// builtPart are the feeds whose hashes begin alike: a table with linear probing, at
// most three quarters full, in which 0 is nothing.
type builtPart struct {
	slots []uint64
	n     int
}

const (
	partBits  = 8
	tagBits   = 38
	buildBits = 64 - tagBits
	// lastBuild is of the year 2097; all later ones are one.
	lastBuild = 1<<buildBits - 1
	// maxBuilds is of how many feeds the build time is remembered.
	maxBuilds = 1 << 24
)

// tagOf gives the part and the rest of a hash, as far as it is kept.
func tagOf(h uint64) (part int, tag uint64) {
	return int(h >> (64 - partBits)), h << partBits >> (64 - tagBits)
}

// slot gives the slot of a tag, or where it belongs.
func (p *builtPart) slot(tag uint64) *uint64 {
	i := int(tag * uint64(len(p.slots)) >> tagBits)
	for p.slots[i] != 0 && p.slots[i]>>buildBits != tag {
		if i++; i == len(p.slots) {
			i = 0
		}
	}
	return &p.slots[i]
}

// of gives the minute that is known of a feed, 0 for none.
func (b *builds) of(h uint64) int64 {
	part, tag := tagOf(h)
	p := &b.parts[part]
	if len(p.slots) == 0 {
		return 0
	}
	return int64(*p.slot(tag) & lastBuild)
}

// learn notes a minute, if it is later than what is known; more feeds than there is room
// for are not.
func (b *builds) learn(h uint64, build int64) {
	part, tag := tagOf(h)
	b.put(part, tag, uint64(max(0, min(build, lastBuild))))
}

func (b *builds) put(part int, tag, build uint64) {
	if build == 0 {
		return
	}
	p := &b.parts[part]
	if 4*(p.n+1) > 3*len(p.slots) {
		p.grow()
	}
	s := p.slot(tag)
	if *s == 0 {
		if b.n >= maxBuilds {
			return
		}
		b.n++
		p.n++
	}
	*s = tag<<buildBits | max(*s&lastBuild, build)
}

// grow makes the table half as large again.
func (p *builtPart) grow() {
	old := p.slots
	p.slots = make([]uint64, max(4, len(old)*3/2))
	for _, s := range old {
		if s != 0 {
			*p.slot(s >> buildBits) = s
		}
	}
}

// merge notes what another knows.
func (b *builds) merge(o *builds) {
	for part := range o.parts {
		for _, s := range o.parts[part].slots {
			b.put(part, s>>buildBits, s&lastBuild)
		}
	}
}

func (b *builds) clone() (c builds) {
	c = *b
	for i := range c.parts {
		c.parts[i].slots = slices.Clone(c.parts[i].slots)
	}
	return c
}
