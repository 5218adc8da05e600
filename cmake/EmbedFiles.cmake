# Run by the build: writes ENTRIES, one line of C++ per file of FILES (names below ROOT), as
# {"its/name", "its content"}, to be included in the braces of an array.
# SPDX-License-Identifier: Apache-2.0
separate_arguments(FILES)
set(entries "")
foreach(file IN LISTS FILES)
  file(READ ${ROOT}/${file} content)
  string(APPEND entries "{\"${file}\", R\"file(${content})file\"},\n")
endforeach()
file(WRITE ${ENTRIES} "${entries}")
