package atomicfile

// BootID identifies the current boot of the machine: the contents that a file had before a
// power failure are unknown after it. It is "" if the system has no such id.
func BootID() string {
	id, _ := Line("/proc/sys/kernel/random/boot_id")
	return id
}
