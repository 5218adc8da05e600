# Run at every build: writes OUTPUT from plugin_interface.h.in with VERSION and a digest of the headers that a
# plugin may include, and touches it only when one of them changed. Expects SOURCE_DIR, VERSION and OUTPUT.
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
set(digests "")
foreach(folder core/base core/tensor core/ops core/graph core/autodiff core/runtime backends/host)
  file(GLOB headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.h ${SOURCE_DIR}/${folder}/passes/*.h)
  foreach(header IN LISTS headers)
    file(SHA256 ${SOURCE_DIR}/${header} digest)
    string(APPEND digests "${header} ${digest}\n")
  endforeach()
endforeach()
string(SHA256 DIGEST "${digests}")
string(SUBSTRING ${DIGEST} 0 12 DIGEST)
configure_file(${SOURCE_DIR}/cmake/plugin_interface.h.in ${OUTPUT} @ONLY)
