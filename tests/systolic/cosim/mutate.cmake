# A seeded fault: one text of a source of the machine, replaced.
#
# mmu_mutate(<name> <file> <contents> <text> <replacement> <out>) puts the contents, in which the
# text must stand exactly once, into <out>.
function(mmu_mutate name file contents text replacement out)
  string(FIND "${contents}" "${text}" first)
  string(FIND "${contents}" "${text}" last REVERSE)
  if(first EQUAL -1)
    message(FATAL_ERROR "mutant ${name}: '${text}' is not in ${file} any more")
  elseif(NOT first EQUAL last)
    message(FATAL_ERROR "mutant ${name}: '${text}' stands more than once in ${file}")
  endif()
  string(REPLACE "${text}" "${replacement}" mutated "${contents}")
  set(${out} "${mutated}" PARENT_SCOPE)
endfunction()
