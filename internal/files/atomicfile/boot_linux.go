package atomicfile

// BootID returns an id of the current boot of the machine, or "" if there is none. After a power
// failure, the contents of unsynced files are unknown.
func BootID() string {
	id, _ := Line("/proc/sys/kernel/random/boot_id")
	return id
}
