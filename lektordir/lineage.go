package lektordir

// Lineages gives for the identities that the journal of a feed has, and that are not
// what unique names of their entries have, the 16 digits that those names have: an
// entry whose guid changed keeps the ones that it was delivered with first, and on a
// machine that met the feed later they are others. It takes no lock; a feed without a
// journal has none.
func (d *Dir) Lineages(feed string) (map[string]string, error) {
	j, err := readJournal(d.journalPath(feed))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, r := range j.all {
		if id, lineage := r.Identity.String(), r.lineage(); id != lineage {
			found[id] = lineage
		}
	}
	return found, nil
}
