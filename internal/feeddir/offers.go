package feeddir

import (
	"errors"

	"github.com/lektordir/lektor/lektordir"
)

// areaPush is where it is kept how a feed tells of its updates.
const areaPush = "push"

// RecordPush keeps how a feed tells of its updates, in src/$feed/etc/push/, for
// those who listen: cloud (the attributes of each cloud element in a line,
// separated by tabs: domain, port, path, registerProcedure, protocol), hub and
// self (a URL a line). What has no lines has no file.
func RecordPush(d *lektordir.Dir, hash string, cloud, hub, self []string) error {
	return errors.Join(
		record(d, hash, areaPush, "cloud", asLines(cloud...)),
		record(d, hash, areaPush, "hub", asLines(hub...)),
		record(d, hash, areaPush, "self", asLines(self...)),
	)
}
