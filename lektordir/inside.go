package lektordir

// Inside returns an error unless each of the paths, relative to the lektor-dir,
// is a directory or not there. Whoever is about to write to files of a feed or
// of a program asks it for the directories on the way, one after the other: a
// link in the place of one may lead out of the lektor-dir, where nothing is to be
// written, moved or deleted.
func (d *Dir) Inside(rels ...string) error {
	for _, rel := range rels {
		if err := d.inside(rel); err != nil && !isNotExist(err) {
			return err
		}
	}
	return nil
}

// InsideSrc is [Dir.Inside] for the directories on the way to a feed's extra
// information in the area of a program; an empty area stands for src/$feed/etc.
func (d *Dir) InsideSrc(feed, area string) error {
	base := "src/" + feed
	if err := d.Inside(base, base+"/etc"); err != nil || area == "" {
		return err
	}
	return d.Inside(base + "/etc/" + area)
}
