# The software bill of materials, SPDX 2.3 as JSON: dependencies.json with the versions that this
# build has found. SOURCE_DATE_EPOCH makes it reproducible.
# SPDX-License-Identifier: Apache-2.0

# Version of a Debian package; empty where dpkg does not know it.
function(triptych_packaged_version result package)
  set(version "")
  if(package AND TRIPTYCH_DPKG_QUERY)
    execute_process(COMMAND ${TRIPTYCH_DPKG_QUERY} -W -f "\${Version}" ${package}
                    OUTPUT_VARIABLE version ERROR_QUIET)
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Upstream's part of a Debian version: "1.74.0" of "1:1.74.0+ds1-21".
function(triptych_upstream_version result version)
  string(REGEX REPLACE "^[0-9]+:" "" version "${version}")
  string(REGEX REPLACE "[+.-](ds|dfsg)[0-9.]*-[^-]*$|-[^-]*$" "" version "${version}")
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# JSON of one package. PURL_PACKAGE is the Debian package whose version agrees with the one found.
function(triptych_sbom_package result id name version licence source)
  cmake_parse_arguments(ARG "" "PURL_PACKAGE;PURL_VERSION" "" ${ARGN})
  set(reference "")
  if(ARG_PURL_PACKAGE)
    string(REPLACE "+" "%2B" package "${ARG_PURL_PACKAGE}")
    string(REPLACE "+" "%2B" packaged "${ARG_PURL_VERSION}")
    string(REPLACE ":" "%3A" packaged "${packaged}")
    set(reference ", \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"pkg:deb/${TRIPTYCH_DISTRIBUTION}/${package}@${packaged}\"}]")
  endif()
  set(text "    {\"SPDXID\": \"${id}\", \"name\": \"${name}\"")
  if(version)
    string(APPEND text ", \"versionInfo\": \"${version}\"")
  endif()
  string(APPEND text ", \"downloadLocation\": \"${source}\", \"filesAnalyzed\": false, \"licenseConcluded\": \"${licence}\", \"licenseDeclared\": \"${licence}\", \"copyrightText\": \"NOASSERTION\"${reference}}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Adds the dependency to `packages` and `relations` when its condition holds.
function(triptych_sbom_dependency json)
  foreach(key name licence use package version when source)
    string(JSON ${key} ERROR_VARIABLE absent GET "${json}" ${key})
    if(absent)
      set(${key} "")
    endif()
  endforeach()
  string(REPLACE " " ";" condition "${when}")
  if(when AND NOT (${condition}))
    return()
  endif()
  string(REGEX REPLACE "[^A-Za-z0-9.-]+" "-" id "SPDXRef-${name}")
  set(found "")
  if(version)
    set(found "${${version}}")
  endif()
  triptych_packaged_version(packaged "${package}")
  triptych_upstream_version(upstream "${packaged}")
  set(purl "")
  if(packaged AND (NOT found OR found VERSION_EQUAL upstream))
    set(found "${upstream}")
    set(purl PURL_PACKAGE "${package}" PURL_VERSION "${packaged}")
  endif()
  triptych_sbom_package(text ${id} "${name}" "${found}" "${licence}" "${source}" ${purl})
  set(packages "${packages},\n${text}" PARENT_SCOPE)
  set(triptych SPDXRef-triptych)
  if(use STREQUAL "compiled")
    set(relation "\"${triptych}\", \"relationshipType\": \"CONTAINS\", \"relatedSpdxElement\": \"${id}\"")
  elseif(use STREQUAL "linked")
    set(relation "\"${triptych}\", \"relationshipType\": \"DYNAMIC_LINK\", \"relatedSpdxElement\": \"${id}\"")
  else()
    set(relation "\"${id}\", \"relationshipType\": \"OPTIONAL_DEPENDENCY_OF\", \"relatedSpdxElement\": \"${triptych}\"")
  endif()
  set(relations "${relations},\n    {\"spdxElementId\": ${relation}}" PARENT_SCOPE)
endfunction()

function(triptych_write_sbom file)
  find_program(TRIPTYCH_DPKG_QUERY dpkg-query)
  mark_as_advanced(TRIPTYCH_DPKG_QUERY)
  set(TRIPTYCH_DISTRIBUTION debian)
  if(EXISTS /etc/os-release)
    file(STRINGS /etc/os-release line REGEX "^ID=")
    string(REGEX REPLACE "^ID=\"?([a-z]+)\"?$" "\\1" TRIPTYCH_DISTRIBUTION "${line}")
  endif()
  set(table ${PROJECT_SOURCE_DIR}/cmake/dependencies.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(READ ${table} json)
  triptych_sbom_package(packages SPDXRef-triptych triptych ${PROJECT_VERSION} Apache-2.0 NOASSERTION)
  set(relations "    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-triptych\"}")
  string(JSON count LENGTH "${json}" dependencies)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON dependency GET "${json}" dependencies ${i})
    triptych_sbom_dependency("${dependency}")
  endforeach()
  set(own_terms "")
  if(packages MATCHES "LicenseRef-NVIDIA")  # an identifier that is not SPDX's needs a text
    set(own_terms "\n  \"hasExtractedLicensingInfos\": [{\"licenseId\": \"LicenseRef-NVIDIA\", \"extractedText\": \"NVIDIA's terms: https://docs.nvidia.com/cuda/eula/\"}],")
  endif()
  string(UUID id NAMESPACE 6ba7b811-9dad-11d1-80b4-00c04fd430c8 TYPE SHA1 NAME "${PROJECT_VERSION}${packages}${relations}")
  string(TIMESTAMP created UTC)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "triptych-@PROJECT_VERSION@",
  "documentNamespace": "urn:uuid:@id@",
  "creationInfo": {"created": "@created@", "creators": ["Tool: CMake-@CMAKE_VERSION@"]},@own_terms@
  "packages": [
@packages@
  ],
  "relationships": [
@relations@
  ]
}
]])
endfunction()
