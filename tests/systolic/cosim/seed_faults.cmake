# Faults seeded in the sources of a machine, all in one build: which one is there is chosen at run
# time. Before a list: MUTANT_SELECTED is what tells the fault's number, from 1.
#
# mmu_seed_begin(<folder> <file>...) reads the sources; mmu_seed(<name> <file> <text> <replacement>)
# seeds one more: the text, an expression that stands exactly once, becomes (seeded) ? replacement :
# text. A replacement with SEEDED in it takes the text's place as it is; SEEDED is then whether the
# fault is there. mmu_seed_end(<root> <file>...) writes the sources and mutants.h, the faults' names,
# below a folder.
# SPDX-License-Identifier: Apache-2.0
macro(mmu_seed_begin folder)
  set(MUTANT_FOLDER ${folder})
  set(MUTANT_NAMES "")
  set(MUTANT_COUNT 0)
  foreach(file ${ARGN})
    file(READ ${PROJECT_SOURCE_DIR}/${folder}/${file} "MUTATED_${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                 ${PROJECT_SOURCE_DIR}/${folder}/${file})
  endforeach()
endmacro()

function(mmu_seed name file text replacement)
  string(FIND "${MUTATED_${file}}" "${text}" first)
  string(FIND "${MUTATED_${file}}" "${text}" last REVERSE)
  if(first EQUAL -1)
    message(FATAL_ERROR "mutant ${name}: '${text}' is not in ${MUTANT_FOLDER}/${file} any more")
  elseif(NOT first EQUAL last)
    message(FATAL_ERROR
      "mutant ${name}: '${text}' stands more than once in ${MUTANT_FOLDER}/${file}")
  endif()
  math(EXPR number "${MUTANT_COUNT} + 1")
  set(seeded "(${MUTANT_SELECTED} == ${number})")
  if(replacement MATCHES "SEEDED")
    string(REPLACE SEEDED "${seeded}" seeded "${replacement}")
  else()
    set(seeded "(${seeded} ? (${replacement}) : (${text}))")
  endif()
  string(REPLACE "${text}" "${seeded}" mutated "${MUTATED_${file}}")
  set("MUTATED_${file}" "${mutated}" PARENT_SCOPE)
  set(MUTANT_COUNT ${number} PARENT_SCOPE)
  set(MUTANT_NAMES "${MUTANT_NAMES}    \"${name}\",\n" PARENT_SCOPE)
endfunction()

macro(mmu_seed_end root)
  foreach(file ${ARGN})
    file(CONFIGURE OUTPUT ${root}/${MUTANT_FOLDER}/${file} CONTENT "${MUTATED_${file}}" @ONLY)
  endforeach()
  configure_file(mutants.h.in ${root}/mutants.h @ONLY)
endmacro()
