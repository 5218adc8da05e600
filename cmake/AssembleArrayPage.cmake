# Run by the build: writes OUTPUT, the page of the array, from PARTS and the WebAssembly of WASM.
execute_process(COMMAND gzip -9nc ${WASM} OUTPUT_FILE ${OUTPUT}.gz COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND base64 -w0 ${OUTPUT}.gz OUTPUT_VARIABLE array_wasm
                COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PARTS}/array.css array_css)
set(array_script "")
foreach(part module numbers stage lanes page training)
  file(READ ${PARTS}/${part}.js script)
  string(REPLACE "\"use strict\";\n" "" script "${script}")
  string(APPEND array_script "${script}")
endforeach()
set(array_script "\"use strict\";\n${array_script}")
configure_file(${PARTS}/array.html ${OUTPUT} @ONLY)
