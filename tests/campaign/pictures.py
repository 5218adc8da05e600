# SPDX-License-Identifier: Apache-2.0
"""Small writers of PNG, TIFF and JPEG files, also of files with less content than the header promises."""
import struct
import zlib

GREY, RGB = 0, 2
NONE, DEFLATE, PACKBITS = 1, 8, 32773  # compressions of TIFF


def zlib_of_zeros(count):
    """A zlib stream of so many zeros: one compressed MiB, repeated."""
    part = 1 << 20

    def deflated(size):
        pack = zlib.compressobj(9, zlib.DEFLATED, -15)
        return pack.compress(bytes(size)) + pack.flush(zlib.Z_FULL_FLUSH)
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    checksum = (count % 65521) << 16 | 1
    return b"\x78\xda" + deflated(part) * (count // part) + deflated(count % part) + end + struct.pack(">I", checksum)


def png_of_zeros(width, height, depth=8, kind=GREY):
    """A valid PNG of zeros. A few kilobytes of it hold a gigabyte."""
    row = 1 + (width * (3 if kind == RGB else 1) * depth + 7) // 8
    data = zlib_of_zeros(row * height)

    def chunk(tag, body):
        return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def tiff_bytes(width, height, data, compression=NONE, pages=1, samples=1, after_last=0):
    """A little-endian TIFF. Its pages share one strip, and `after_last` is the last page's successor."""
    size = 2 + 12 * 10 + 4
    strip = 8 + size * pages
    tags = [(256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, compression), (262, 3, 1 if samples == 1 else 2),
            (273, 4, strip), (277, 3, samples), (278, 4, height), (279, 4, len(data)), (284, 3, 1)]
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    out = bytearray(b"II*\0" + struct.pack("<I", 8))
    for page in range(pages):
        out += body + struct.pack("<I", 8 + size * (page + 1) if page + 1 < pages else after_last)
    return bytes(out) + data


def grey_jpeg(blocks, progressive=False):
    """A flat grey JPEG of blocks x blocks blocks. Each Huffman table has one code, "0"."""
    def segment(marker, body):
        return struct.pack(">BBH", 255, marker, len(body) + 2) + body
    side = 8 * blocks
    one_code = bytes([1] + [0] * 15 + [0])
    frame = struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 0x11, 0])
    scan = bytes([1, 1, 0, 0, 0 if progressive else 63, 0])
    bits = blocks * blocks * (1 if progressive else 2)
    padding = -bits % 8
    data = bytearray((bits + padding) // 8)
    data[-1] |= (1 << padding) - 1
    return (b"\xff\xd8" + segment(0xdb, b"\0" + bytes([1] * 64)) + segment(0xc2 if progressive else 0xc0, frame) +
            segment(0xc4, b"\x00" + one_code) + segment(0xc4, b"\x10" + one_code) + segment(0xda, scan) + bytes(data) +
            b"\xff\xd9")
