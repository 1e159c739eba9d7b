package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// table is what was measured, in groups that are compared: the first program of
// a group is lektor's.
type table struct{ groups []*group }

type group struct {
	measure, unit string
	programs      []string
	n             []float64 // how many of the unit were done
	taken         []measurement
}

func (t *table) group(measure, unit string) *group {
	g := &group{measure: measure, unit: unit}
	t.groups = append(t.groups, g)
	return g
}

// add notes that a program did n things; one that did not run is left out.
func (g *group) add(c *contestant, n float64, m measurement) {
	if m.time == 0 {
		return
	}
	if c.family {
		m.memory = 0
	}
	g.programs, g.n, g.taken = append(g.programs, c.name), append(g.n, n), append(g.taken, m)
}

func (g *group) rate(i int) float64 { return g.n[i] / g.taken[i].time.Seconds() }

// print writes the table. The ratio is how many times as fast lektor's program
// is as this one.
func (t *table) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "measured\tprogram\ttime\trate\tratio\tmemory\tanswers")
	for _, g := range t.groups {
		measure := g.measure
		for i, m := range g.taken {
			memory := ""
			if m.memory > 0 {
				memory = fmt.Sprintf("%.0f MiB", float64(m.memory)/(1<<20))
			}
			took := fmt.Sprintf("%.2f s", m.time.Seconds())
			if m.time < 100*time.Millisecond {
				took = fmt.Sprintf("%.1f ms", ms(m.time))
			}
			ratio := g.rate(0) / g.rate(i)
			fmt.Fprintf(out, "%s\t%s\t%s\t%.0f %s/s\t%.1f×\t%s\t%s\n", measure, g.programs[i], took, g.rate(i), g.unit, ratio, memory, m.requests)
			measure = ""
		}
	}
	return out.Flush()
}
