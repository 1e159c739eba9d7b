package filelog

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
)

var table = crc32.MakeTable(crc32.Castagnoli)

// Seal ends the line that begins in b at start: it appends the CRC-32C of the line in eight
// hexadecimal digits, and a newline.
func Seal(b []byte, start int) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(b[start:], table))
	return append(hex.AppendEncode(b, sum[:]), '\n')
}

// Unseal returns a line that [Seal] ended, without the checksum; line has no newline. ok is false if
// the checksum is wrong.
func Unseal(line []byte) (text []byte, ok bool) {
	n := len(line) - 8
	if n < 0 {
		return nil, false
	}
	var sum [4]byte
	_, err := hex.Decode(sum[:], line[n:])
	return line[:n], err == nil && binary.BigEndian.Uint32(sum[:]) == crc32.Checksum(line[:n], table)
}
