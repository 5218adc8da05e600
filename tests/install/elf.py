"""Reads from an ELF file (64 bits, little-endian) the facts that the dynamic linker and the kernel use."""
# SPDX-License-Identifier: Apache-2.0
import struct

RELOCATABLE, EXECUTABLE, SHARED = 1, 2, 3
_DYNAMIC, _NOTE_PROPERTY, _STACK, _RELRO = 2, 0x6474E553, 0x6474E551, 0x6474E552
_NEEDED, _RPATH, _FLAGS, _RUNPATH, _FLAGS_1 = 1, 15, 30, 29, 0x6FFFFFFB
_SYMBOLS, _DYNAMIC_SYMBOLS, _NOTE = 2, 11, 7
_X86_FEATURES, _IBT, _SHSTK = 0xC0000002, 1, 2


class Elf:
    """One file. Paths are those of DT_NEEDED, DT_RPATH and DT_RUNPATH, as they stand there."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._data = file.read()
        (self.kind, _, _, _, self._program_at, self._section_at, _, _, self._program_size, self._programs,
         self._section_size, self._sections, _) = struct.unpack_from("<HHIQQQIHHHHHH", self._data, 16)
        self.needed, self.search_path, self._flags, self._flags_1 = [], None, 0, 0
        for type_, _, offset, size in self._headers():
            if type_ == _DYNAMIC:
                self._read_dynamic(offset, size)

    def _headers(self):
        """Type, flags, offset and size of each segment."""
        for i in range(self._programs):
            type_, flags, offset, _, _, size = struct.unpack_from("<IIQQQQ", self._data,
                                                                  self._program_at + i * self._program_size)
            yield type_, flags, offset, size

    def _section_headers(self):
        """Type, offset, size and linked section of each section."""
        for i in range(self._sections):
            _, type_, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", self._data,
                                                                    self._section_at + i * self._section_size)
            yield type_, offset, size, link

    def _text(self, at):
        return self._data[at:self._data.index(b"\0", at)].decode()

    def _names_at(self):
        """Offset of the strings of the dynamic section: those of the dynamic symbols."""
        sections = list(self._section_headers())
        return next(sections[link][1] for type_, _, _, link in sections if type_ == _DYNAMIC_SYMBOLS)

    def _read_dynamic(self, offset, size):
        names = self._names_at()
        for tag, value in struct.iter_unpack("<qQ", self._data[offset:offset + size]):
            if tag == 0:
                break
            if tag == _NEEDED:
                self.needed.append(self._text(names + value))
            elif tag in (_RPATH, _RUNPATH):
                self.search_path = self._text(names + value)
            elif tag == _FLAGS:
                self._flags = value
            elif tag == _FLAGS_1:
                self._flags_1 = value

    @property
    def is_position_independent_program(self):
        return self.kind == SHARED and bool(self._flags_1 & 0x08000000)

    @property
    def binds_at_start(self):
        return bool(self._flags & 8 or self._flags_1 & 1)

    @property
    def has_read_only_relocations(self):
        return any(type_ == _RELRO for type_, *_ in self._headers())

    @property
    def has_executable_stack(self):
        """Without the segment the kernel makes the stack executable."""
        stacks = [flags for type_, flags, *_ in self._headers() if type_ == _STACK]
        return not stacks or bool(stacks[0] & 1)

    @property
    def undefined(self):
        """Names of the symbols that others define."""
        names = set()
        sections = list(self._section_headers())
        for type_, offset, size, link in sections:
            if type_ not in (_SYMBOLS, _DYNAMIC_SYMBOLS):
                continue
            for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", self._data[offset:offset + size]):
                if section == 0 and name:
                    names.add(self._text(sections[link][1] + name).split("@")[0])
        return names

    @property
    def branch_protection(self):
        """{"IBT", "SHSTK"}, as far as the file is marked. x86-64 only."""
        marks = 0
        for type_, offset, size, _ in self._section_headers():
            end = offset + size
            while type_ == _NOTE and offset + 12 <= end:
                name_size, size, kind = struct.unpack_from("<III", self._data, offset)
                at = offset + 12 + (name_size + 3) // 4 * 4
                if kind == 5 and self._data[offset + 12:at] == b"GNU\0":
                    marks |= self._features(at, at + size)
                offset = at + (size + 3) // 4 * 4
        return {name for name, bit in (("IBT", _IBT), ("SHSTK", _SHSTK)) if marks & bit}

    def _features(self, at, end):
        while at + 8 <= end:
            kind, size = struct.unpack_from("<II", self._data, at)
            if kind == _X86_FEATURES:
                return struct.unpack_from("<I", self._data, at + 8)[0]
            at += 8 + (size + 7) // 8 * 8
        return 0


def foreign_places(elf):
    """Elements of the search path and names of libraries that depend on the current directory."""
    found = [name for name in elf.needed if "/" in name and not name.startswith("/")]
    if elf.search_path is not None:
        found += [element for element in elf.search_path.split(":")
                  if not element.startswith("/") and element not in ("$ORIGIN", "${ORIGIN}")
                  and not element.startswith(("$ORIGIN/", "${ORIGIN}/"))]
    return found


def is_elf(path):
    with open(path, "rb") as file:
        head = file.read(6)
    return head == b"\x7fELF\x02\x01"


def files_below(folder):
    """The programs and shared objects below a folder, each once, without following links."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a", ".gch", ".cpp", ".h"):
            continue
        if is_elf(path) and Elf(path).kind in (EXECUTABLE, SHARED):
            yield path
