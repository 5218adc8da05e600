# `cmake --install`: libraries with exported targets (find_package(Triptych)), headers under
# include/triptych, and the program.
# SPDX-License-Identifier: Apache-2.0

include(CMakePackageConfigHelpers)
include(TriptychSbom)

include(TriptychComponents)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Triptych)

# A component is a set of exported targets. The configuration finds its packages, with their own message if one
# is missing.
set(component_table "")
foreach(component IN LISTS TRIPTYCH_COMPONENTS)
  list(TRANSFORM TRIPTYCH_${component}_LIBRARIES PREPEND triptych_ OUTPUT_VARIABLE libraries)
  install(TARGETS ${libraries} EXPORT Triptych-${component}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT Triptych-${component} NAMESPACE triptych:: DESTINATION ${package} COMPONENT development)
  string(APPEND component_table "set(_triptych_uses_${component} ${TRIPTYCH_${component}_USES})\n"
         "macro(_triptych_find_packages_of_${component})\n")
  foreach(found IN LISTS TRIPTYCH_${component}_PACKAGES)
    string(APPEND component_table "  find_dependency(${found})\n")
  endforeach()
  string(APPEND component_table "endmacro()\n")
endforeach()
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/TriptychConfig.cmake.in ${PROJECT_BINARY_DIR}/TriptychConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TriptychConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TriptychConfig.cmake
              ${PROJECT_BINARY_DIR}/TriptychConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/TriptychPlugin.cmake ${CMAKE_CURRENT_LIST_DIR}/plugin_interface.cpp
        DESTINATION ${package} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/parallel
                  ${PROJECT_SOURCE_DIR}/systolic
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN rtl EXCLUDE PATTERN machines EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/experiments/training
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych/experiments COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/backends/all_backends.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych/backends COMPONENT development)
foreach(backend cpu systolic)
  install(FILES ${PROJECT_SOURCE_DIR}/backends/${backend}/${backend}_backend.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych/backends/${backend} COMPONENT development)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/backends/host
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych/backends COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/core/runtime/plugin_interface.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych/core/runtime COMPONENT development)
if(TARGET triptych)
  install(TARGETS triptych RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
# Licences and the list of what is inside go wherever code goes.
triptych_write_sbom(${PROJECT_BINARY_DIR}/triptych.spdx.json)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_BINARY_DIR}/triptych.spdx.json
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
if(SKBUILD)
  install(FILES ${PROJECT_BINARY_DIR}/triptych.spdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT wheel)
endif()
