# `cmake --install`: libraries with exported targets (find_package(Triptych)), headers under
# include/triptych, and the program.
# SPDX-License-Identifier: Apache-2.0

include(CMakePackageConfigHelpers)
include(TriptychSbom)

get_property(libraries GLOBAL PROPERTY TRIPTYCH_LIBRARIES)
install(TARGETS ${libraries} EXPORT TriptychTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT TriptychTargets NAMESPACE triptych::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Triptych COMPONENT development)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/TriptychConfig.cmake.in ${PROJECT_BINARY_DIR}/TriptychConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Triptych)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TriptychConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TriptychConfig.cmake
              ${PROJECT_BINARY_DIR}/TriptychConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Triptych COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/parallel
                  ${PROJECT_SOURCE_DIR}/systolic
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN rtl EXCLUDE PATTERN machines EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/experiments/training
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych/experiments COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/backends/all_backends.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/triptych/backends COMPONENT development)
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
