# Run by the build: writes ENTRIES, one line of C++ per file of FILES, as {"name.o", "its bytes"sv}, to be
# included in the braces of an array.
# SPDX-License-Identifier: Apache-2.0
separate_arguments(FILES)
set(entries "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} content HEX)
  # A literal for each byte, because an escape would continue with digits behind it.
  string(REGEX REPLACE "(..)" "\"\\\\x\\1\"" content "${content}")
  string(APPEND entries "{\"${name}\", ${content}sv},\n")
endforeach()
file(WRITE ${ENTRIES} "${entries}")
